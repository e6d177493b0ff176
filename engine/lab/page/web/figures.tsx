// Draws figures of the papers from the engine's schedules.
import { useMemo } from 'preact/hooks';
import { Arrows } from './arrows';
import type { Answer, Json } from './engine';
import { runs, words } from './format';
import { Grid } from './grid';
import { Choice, useAnswers } from './parts';
import { goTo, set, useParam } from './state';
import { States } from './states';

interface Part {
  question: { collective: string; algorithm: string; ranks: number; bytes: string; params?: { dims: string } };
  steps: number[]; // the drawn steps: rounds with messages; rounds of local work do not count
  layout: string;
  rank?: number; // the rank with emphasised messages
  block?: number; // draws the way of this block instead of steps
  holdings?: boolean; // with the contributions that each rank holds afterwards
}
interface Figure {
  name: string;
  title: string;
  says: string;
  parts: Part[];
}

const ask = (collective: string, algorithm: string, ranks: number, dims?: string): Part['question'] => ({ collective, algorithm, ranks, bytes: '1M', ...(dims && { params: { dims } }) });
const figures: Figure[] = [
  {
    name: 'trivance-1', title: 'Trivance, Figure 1', says: 'Recursive doubling among 8 ranks takes three steps; Bruck with two ports and Trivance take two among 9. Trivance’s partners lie on both sides, three times as far each step.',
    parts: [
      { question: ask('all_reduce', 'recursive_doubling', 8), steps: [1, 2, 3], layout: 'circle' },
      { question: ask('all_reduce', 'bruck_ternary_latency', 9), steps: [1, 2], layout: 'circle' },
      { question: ask('all_reduce', 'trivance_latency', 9), steps: [1, 2], layout: 'circle' },
    ],
  },
  {
    name: 'trivance-2', title: 'Trivance, Figure 2', says: 'What rank 13 of 27 has received: each step brings what two others know already, so that it knows three times as much.',
    parts: [{ question: ask('all_reduce', 'trivance_latency', 27), steps: [1, 2, 3], layout: 'circle', rank: 13 }],
  },
  {
    name: 'trivance-3', title: 'Trivance, Figure 3', says: 'Whose contributions each rank of a ring of 9 holds, step by step.',
    parts: [{ question: ask('all_reduce', 'trivance_latency', 9), steps: [1, 2], layout: 'circle', holdings: true }],
  },
  {
    name: 'trivance-4', title: 'Trivance, Figure 4', says: 'Seven ranks need as many steps as nine.',
    parts: [
      { question: ask('all_reduce', 'trivance_latency', 7), steps: [1, 2], layout: 'circle' },
      { question: ask('all_reduce', 'trivance_latency', 9), steps: [1, 2], layout: 'circle' },
    ],
  },
  {
    name: 'trivance-5', title: 'Trivance, Figure 5', says: 'The first two steps on a torus of 9 x 9: one half of the vector goes along rows while its mirror image goes along columns, then both further.',
    parts: [{ question: ask('all_reduce', 'trivance_latency', 81, '9x9'), steps: [1, 2], layout: 'grid' }],
  },
  {
    name: 'traff-1', title: 'Träff, Figure 1', says: 'The tree along which block 0 is summed up among 22 ranks; every other block has the same tree, turned round.',
    parts: [{ question: ask('reduce_scatter', 'circulant', 22), steps: [], layout: 'tree', block: 0 }],
  },
];

function Drawn({ part, answer }: { part: Part; answer: Answer }) {
  const states = useMemo(() => (answer.json.error ? undefined : new States(answer)), [answer]);
  if (!states) return <p class="error" role="status">{answer.json.error}</p>;
  const rank = part.rank ?? -1;
  const sends = (round: number) => states.json.transfers[round - 1].some((t: Json) => t.from.some((from: number) => t.to.some((to: number) => from !== to)));
  const steps = Array.from({ length: states.rounds }, (_, k) => k + 1).filter(sends);
  const drawn = part.block === undefined ? part.steps.map((step) => steps[step - 1]) : [0];
  return (
    <>
      {drawn.map((round, i) => (
        <figure class="card">
          <Arrows states={states} round={round} layout={part.layout} rank={rank} block={part.block} />
          <figcaption>
            {words(states.json.algorithm)}, N = {states.ranks}{part.block === undefined ? `, step ${part.steps[i]} of ${steps.length}` : `, all ${steps.length} rounds`}
            {rank >= 0 && `: rank ${rank} holds ${runs(states.cell(round, rank, 0).ranks)}`}
          </figcaption>
          {part.holdings && <Grid states={states} round={round} rank={-1} />}
        </figure>
      ))}
    </>
  );
}

export function Figures() {
  const [name, setName] = useParam('papers.figure', figures[0].name);
  const figure = figures.find((one) => one.name === name) ?? figures[0];
  const answers = useAnswers(figure.parts.map((part) => ({ ask: 'play', question: part.question })));
  const current = answers.length === figure.parts.length && answers.every((answer) => !answer.old);
  return (
    <div class="figures">
      <div class="controls"><Choice label="figure" value={figure.name} set={setName} of={figures.map((one) => [one.name, one.title])} /></div>
      <p>{figure.says}</p>
      <div class="drawings" data-figure={current ? figure.name : ''}>{current && figure.parts.map((part, i) => <Drawn part={part} answer={answers[i]} />)}</div>
      <p class="buttons">
        {figure.parts.map(({ question }) => (
          <button onClick={() => {
            set({ 'player.c': question.collective, 'player.a': question.algorithm, 'player.n': String(question.ranks), 'player.dims': question.params?.dims, 'player.k': '1', 'player.e': undefined });
            goTo('player');
          }}>Play {words(question.algorithm)}, N = {question.ranks}</button>
        ))}
      </p>
    </div>
  );
}
