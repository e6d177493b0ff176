// Lists the six lessons as a teacher gives them; 'rankine lesson' writes their text. Names of a lesson's schedules contain the lesson's number.
export interface Lesson {
  title: string;
  minutes: number; // planned: one third each for explanation, discussion and tasks
  show: [string, string, Record<string, string>][]; // a section of the page: the activity there, its id, its settings
  ask: [string, string][]; // a question and a good answer
  formulas: string[]; // tasks of 'rankine check --task'
}

export const lessons: Lesson[] = [
  {
    title: 'Primitives', minutes: 45,
    show: [
      ['Compare before and after of all seven', 'primitives', {}],
      ['Play a reduce-scatter, then an all-gather', 'player', { 'player.c': 'reduce_scatter', 'player.a': 'ring', 'player.n': '4', 'player.k': '0' }],
    ],
    ask: [
      ['Which primitive does data-parallel training need, and which two make up for it in FSDP?', 'All-reduce. Reduce-scatter for gradients and all-gather for parameters: one of each moves as much as one all-reduce. FSDP gathers twice, so it moves half as much again.'],
      ['What is an all-gather backwards?', 'A reduce-scatter: each copy from r to s becomes an addition from s to r.'],
      ['Why is an all-to-all a transposition?', 'Block s of rank r becomes block r of rank s, and nothing is added.'],
    ],
    formulas: ['dp_bytes', 'fsdp_bytes'],
  },
  {
    title: 'The ring', minutes: 45,
    show: [
      ['Play a ring all-reduce among 4 ranks', 'player', { 'player.c': 'all_reduce', 'player.a': 'ring', 'player.n': '4', 'player.k': '0' }],
      ['Let the class guess, then break the ring', 'break', { 'break.a': 'ring', 'break.n': '4' }],
    ],
    ask: [
      ['How many bytes does each rank send, and why can no algorithm do with fewer?', '2(N-1)/N M. Some rank has to give away nearly all of its vector and receive nearly all of the result.'],
      ['When is the ring slow?', 'With small vectors or many ranks: 2(N-1) messages follow each other, and each costs alpha.'],
    ],
    formulas: ['ring_bytes', 'ring_time', 'alternate_ring'],
  },
  {
    title: 'Trees', minutes: 40,
    show: [
      ['Play a binomial broadcast among 8 ranks', 'player', { 'player.c': 'broadcast', 'player.a': 'binomial_near', 'player.n': '8', 'player.k': '0' }],
      ['Race three broadcasts, first with 1 KiB and then with 64 MiB', 'race', { 'race.c': 'broadcast', 'race.n': '16', 'race.m': '1K' }],
    ],
    ask: [
      ['How many rounds does any broadcast need at least, and why?', 'The logarithm of N, rounded up: with one port the number of ranks that have the data at most doubles in a round.'],
      ['What do the ranks do in the last round of a broadcast along a tree?', 'One half sends, the other half receives. The receivers never send at all: a tree uses only a part of the bandwidth.'],
    ],
    formulas: ['tree_rounds', 'chain_broadcast', 'tree_broadcast'],
  },
  {
    title: 'Ports and pipelining', minutes: 60,
    show: [
      ['Compare one port with as many as it can use', 'timeline', { 'player.c': 'all_reduce', 'player.a': 'direct_two_shot', 'player.n': '8' }],
      ['Watch segments overlap along a chain', 'timeline', { 'player.c': 'broadcast', 'player.a': 'chain', 'player.n': '8', 'player.p': '8' }],
    ],
    ask: [
      ['Why is a chain in many chunks faster than a tree, although it has more rounds?', 'All links work at the same time: the time is near one M beta, where the tree takes log N of them.'],
      ['Why not cut into single bytes?', 'Each chunk costs an alpha; the best number of chunks is the square root of (N-2) M beta / alpha.'],
      ['Where is the same line in the training of large models?', 'Pipeline stages and micro-batches; the bubble is the time in which the line fills and empties.'],
    ],
    formulas: ['pipeline_broadcast', 'bubble'],
  },
  {
    title: 'Tori', minutes: 45,
    show: [
      ['Play an all-reduce on a torus of 3 x 4', 'player', { 'player.c': 'all_reduce', 'player.a': 'bucket', 'player.n': '12', 'player.dims': '3x4', 'player.k': '0' }],
      ['Race on links that form a ring, then on links that are not shared', 'race', { 'race.n': '16', 'race.wiring': 'ring' }],
    ],
    ask: [
      ['Recursive doubling has few rounds. Why does it lose on a ring of links?', 'Partners are far apart; their messages share links, and each waits for the others.'],
      ['What does a torus of D x D gain over a ring of the same ranks?', '4(D-1) rounds instead of 2(D²-1), and messages go to neighbours only.'],
    ],
    formulas: ['torus_rounds'],
  },
  {
    title: 'Choosing', minutes: 60,
    show: [
      ['Let the class guess, then find the crossovers', 'cost', {}],
      ['Find the best bucket', 'cost', { 'cost.backward': '20ms' }],
      ['Trade the bubble against memory', 'planner', { 'planner.order': 'gpipe' }],
    ],
    ask: [
      ['Which algorithm would you take for 1 KiB among 64 ranks, and which for 1 GiB?', 'One of few rounds, for example recursive doubling; one of few bytes, for example the ring.'],
      ['Why does a larger bucket not always help?', 'It becomes ready later, and the last one starts when the backward pass has ended.'],
      ['When is data parallelism over 8 ranks cheaper than tensor parallelism?', 'When the gradients of a step are fewer bytes than the activations that tensor parallelism sums twice a layer, or hide behind the backward pass.'],
    ],
    formulas: ['crossover', 'accumulation_bytes', 'tp_bytes'],
  },
];
