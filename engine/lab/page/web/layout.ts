// Places ranks in a drawing.
import type { Json } from './engine';
import type { States } from './states';

export type Place = [number, number]; // in a square of side 1

const spread = (i: number, count: number): number => (count === 1 ? 0.5 : 0.05 + (0.9 * i) / (count - 1));

function grid(ranks: number, columns: number): Place[] {
  const rows = Math.ceil(ranks / columns);
  return Array.from({ length: ranks }, (_, r) => [spread(r % columns, columns), spread(Math.floor(r / columns), rows)]);
}

/** The parents in a tree made of the engine's transfers: a rank's parent is the first rank to which it sends for an addition, else the first rank from which it copies. */
function parents(states: States, block?: number): (number | undefined)[] {
  const found: (number | undefined)[] = Array(states.ranks).fill(undefined);
  const below = (rank: number, above: number): boolean => {
    for (let at: number | undefined = rank; at !== undefined; at = found[at]) if (at === above) return true;
    return false;
  };
  const hang = (rank: number, above: number) => {
    if (found[rank] === undefined && rank !== above && !below(above, rank)) found[rank] = above;
  };
  const each = (act: string, take: (from: number, to: number) => void) =>
    states.json.transfers.flat().forEach((t: Json) => {
      if (t.act !== act || (block !== undefined && !t.what.includes(block))) return;
      t.from.forEach((from: number) => t.to.forEach((to: number) => take(from, to)));
    });
  each('reduce', hang);
  each('copy', (from, to) => hang(to, from));
  return found;
}

function tree(states: States, block?: number): Place[] {
  const above = parents(states, block);
  const children: number[][] = above.map(() => []);
  above.forEach((parent, rank) => parent !== undefined && children[parent].push(rank));
  const x: number[] = [], depth: number[] = [];
  let leaves = 0;
  const place = (rank: number, level: number) => {
    depth[rank] = level;
    children[rank].forEach((child) => place(child, level + 1));
    x[rank] = children[rank].length === 0 ? leaves++ : (x[children[rank][0]] + x[children[rank][children[rank].length - 1]]) / 2;
  };
  above.forEach((parent, rank) => parent === undefined && place(rank, 0));
  const levels = Math.max(...depth) + 1;
  return x.map((at, rank) => [spread(at, leaves), spread(depth[rank], levels)]);
}

const dimsOf = (states: States): number[] => String(states.json.params?.dims ?? states.json.dims ?? '').split('x').map(Number).filter((d) => d > 0);

/** The layout for a schedule: a torus if it has dimensions, a tree if it has a root, a line for a chain, else a circle. */
export function fitting(states: States): string {
  if (dimsOf(states).length > 1) return 'grid';
  if (states.json.algorithm === 'chain') return 'line';
  if (['broadcast', 'reduce', 'scatter', 'gather'].includes(states.json.collective) || /tree|binomial/.test(states.json.algorithm)) return 'tree';
  return 'circle';
}

export function circle(ranks: number): Place[] {
  return Array.from({ length: ranks }, (_, r) => {
    const turn = (2 * Math.PI * r) / ranks - Math.PI / 2;
    return [0.5 + 0.42 * Math.cos(turn), 0.5 + 0.42 * Math.sin(turn)];
  });
}

/** `block`: a tree shows the way of this block. */
export function positions(layout: string, states: States, block?: number): Place[] {
  const { ranks } = states;
  switch (layout === 'auto' ? fitting(states) : layout) {
    case 'line':
      return grid(ranks, ranks);
    case 'grid':
      return grid(ranks, dimsOf(states).at(-1) ?? Math.ceil(Math.sqrt(ranks)));
    case 'tree':
      return tree(states, block);
    default:
      return circle(ranks);
  }
}
