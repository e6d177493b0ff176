// Draws the gallery as SVG for the page, and for storage in the page for browsers without JavaScript.
import { call } from './call';
import { States } from './states';

export interface Primitive {
  collective: string;
  algorithm: string;
  title: string;
  says: string;
  appears: string;
}
/** Each primitive with an algorithm that shows it and with its use. */
export const primitives: Primitive[] = [
  { collective: 'broadcast', algorithm: 'linear', title: 'Broadcast', says: 'One rank has the data; afterwards all have them.', appears: 'initial weights of DDP; a token that one rank sampled' },
  { collective: 'reduce', algorithm: 'linear', title: 'Reduce', says: 'The sum over all ranks, at one rank.', appears: 'a loss or a metric that one rank logs' },
  { collective: 'all_gather', algorithm: 'direct', title: 'All-gather', says: 'The parts of all ranks, put together at each rank.', appears: 'FSDP before each layer; sequence parallelism' },
  { collective: 'reduce_scatter', algorithm: 'direct', title: 'Reduce-scatter', says: 'The sum over all ranks; each rank keeps one part of it.', appears: 'FSDP’s and ZeRO’s gradients' },
  { collective: 'all_reduce', algorithm: 'ring', title: 'All-reduce', says: 'The sum over all ranks, at each rank.', appears: 'DDP’s gradients; tensor parallelism, twice a layer' },
  { collective: 'all_to_all', algorithm: 'direct', title: 'All-to-all', says: 'Each rank has a part for each other rank: a transposition.', appears: 'tokens to the experts of a MoE, and back' },
  { collective: 'send_recv', algorithm: 'direct', title: 'Send and receive', says: 'Data go from one rank to another.', appears: 'pipeline stages' },
];
export const galleryRanks = 4;
export const galleryRequest = (p: Primitive) => ({
  ask: 'play',
  question: { collective: p.collective, algorithm: p.algorithm, ranks: galleryRanks, bytes: 4096 },
});

const side = 26, gap = 3, top = 14; // size of a cell, space between two cells, space above the first cell

const left = 20, movesWidth = 58;
// For all_to_all, with its N x N blocks: a column for each block of one rank that is present now.
const routes = (states: States): boolean => states.places > 8;
const columnsOf = (states: States): number => (routes(states) ? states.ranks : states.places);
const stateWidth = (states: States): number => left + columnsOf(states) * (side + gap);

/** Ranks are rows, blocks columns; a cell has a bar for each rank that has contributed. */
export function stateSvg(states: States, rounds: number, label: string): string {
  const all = states.ranks, route = routes(states), columns = columnsOf(states);
  const width = stateWidth(states), height = top + all * (side + gap);
  let body = '';
  for (let r = 0; r < all; ++r) {
    const y = top + r * (side + gap);
    body += `<text class="label" x="0" y="${y + side / 2 + 4}">${r}</text>`;
    const held: [number, ReturnType<States['cell']>][] = [];
    for (let place = 0; place < states.places; ++place) {
      const cell = states.cell(rounds, r, place);
      if (!route || (cell.ranks.length > 0 && (rounds === 0 || cell.needed))) held.push([place, cell]);
    }
    held.slice(0, columns).forEach(([place, cell], i) => {
      const x = left + i * (side + gap);
      body += `<rect class="place" x="${x}" y="${y}" width="${side}" height="${side}" rx="3"/>`;
      if (route) {
        const source = Math.floor(place / all);
        body += `<rect class="r${source % 8}" x="${x}" y="${y}" width="${side}" height="${side}" rx="3"/><text class="on" x="${x + side / 2}" y="${y + side / 2 + 4}">${source}${place % all}</text>`;
        return;
      }
      // At first all cells are bold; later only complete cells that are needed there.
      const faint = rounds === 0 || (cell.complete && cell.needed) ? '' : ' faint';
      const each = side / Math.max(1, cell.ranks.length);
      cell.ranks.forEach((from, j) => {
        body += `<rect class="r${from % 8}${faint}" x="${x}" y="${y + j * each}" width="${side}" height="${each}"/>`;
      });
    });
  }
  for (let i = 0; i < columns && !route; ++i) {
    body += `<text class="label mid" x="${left + i * (side + gap) + side / 2}" y="10">${i}</text>`;
  }
  return `<svg class="state" role="img" aria-label="${label}" viewBox="0 0 ${width} ${height}" style="max-width: ${width}px">${body}</svg>`;
}

/** The messages from one round to another: senders left, receivers right, in the rows of the neighbouring pictures. */
export function movesSvg(states: States, from: number, to: number): string {
  const width = movesWidth, height = top + states.ranks * (side + gap);
  const y = (rank: number) => top + rank * (side + gap) + side / 2;
  const seen = new Set<string>();
  for (const t of states.json.transfers.slice(from, to).flat()) {
    for (const a of t.from) for (const b of t.to) if (a !== b) seen.add(`${t.act} ${a} ${b}`);
  }
  const body = [...seen].map((each) => {
    const [act, a, b] = each.split(' ');
    const from = y(Number(a)), to = y(Number(b));
    return `<path class="move ${act}" d="M4,${from} C26,${from} 26,${to} 48,${to}"/><path class="head ${act}" d="M48,${to - 4} L56,${to} L48,${to + 4} z"/>`;
  });
  return `<svg class="moves" role="img" aria-label="${seen.size} pairs of ranks, from sender to receiver" viewBox="0 0 ${width} ${height}" style="max-width: ${width}px">${body.join('')}</svg>`;
}

/** The round after the first phase if there are two phases. */
export function middle(states: States): number | undefined {
  const phases = states.json.phases;
  return phases.length === 2 ? phases[0].rounds : undefined;
}

export function card(p: Primitive, states: States): string {
  const picture = (rounds: number, what: string) =>
    `<figure style="--w: ${stateWidth(states)}">${stateSvg(states, rounds, `${p.title}: what each of ${states.ranks} ranks holds ${what}`)}<figcaption>${what}</figcaption></figure>`;
  const moves = (from: number, to: number) => `<figure class="between" style="--w: ${movesWidth}">${movesSvg(states, from, to)}<figcaption>${to - from === 1 ? '1 round' : `${to - from} rounds`}</figcaption></figure>`;
  const between = middle(states), end = states.rounds;
  return `<div class="panels">${picture(0, 'before')}${
    between === undefined ? moves(0, end) : moves(0, between) + picture(between, 'after reduce-scatter') + moves(between, end)
  }${picture(end, between === undefined ? 'after' : 'after all-gather')}</div>`;
}

/** The whole gallery as HTML, by an engine that runs here. */
export function gallery(engine: unknown): string {
  return primitives
    .map((p) => {
      const { json, numbers } = call(engine, JSON.stringify(galleryRequest(p)));
      const answer = JSON.parse(json);
      if (answer.error) throw new Error(`${p.collective}: ${answer.error}`);
      return `<article class="card ${p.collective}"><h3>${p.title}</h3><p>${p.says}</p>${card(p, new States({ json: answer, numbers }))}<p class="where">${p.appears}</p></article>`;
    })
    .join('');
}
