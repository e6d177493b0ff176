// Finds bars in rows over time for a pointer and for arrow keys.
export interface Bars {
  count: number;
  row: (bar: number) => number;
  begin: (bar: number) => number;
  end: (bar: number) => number;
}

const best = (bars: Bars, allowed: (bar: number) => boolean, cost: (bar: number) => number): number => {
  let found = -1;
  for (let i = 0; i < bars.count; ++i) if (allowed(i) && (found < 0 || cost(i) < cost(found))) found = i;
  return found;
};

/** The bar in this row at this time; -1: none. */
export const barAt = (bars: Bars, row: number, time: number): number => best(bars, (i) => bars.row(i) === row && bars.begin(i) <= time && time < bars.end(i), () => 0);

/** The bar to which an arrow key leads from a bar, or from none (-1); the bar itself if there is no bar in that direction; undefined: `key` is not an arrow key. */
export function barBy(bars: Bars, at: number, key: string): number | undefined {
  if (!/^Arrow(Left|Right|Up|Down)$/.test(key)) return undefined;
  if (at < 0 || at >= bars.count) return best(bars, () => true, (i) => bars.begin(i) + bars.row(i) * 1e9);
  const row = bars.row(at), begin = bars.begin(at), away = (i: number) => Math.abs(bars.begin(i) - begin);
  let next = -1;
  if (key === 'ArrowRight') next = best(bars, (i) => bars.row(i) === row && bars.begin(i) > begin, away);
  if (key === 'ArrowLeft') next = best(bars, (i) => bars.row(i) === row && bars.begin(i) < begin, away);
  if (key === 'ArrowDown') next = best(bars, (i) => bars.row(i) > row, (i) => bars.row(i) * 1e9 + away(i));
  if (key === 'ArrowUp') next = best(bars, (i) => bars.row(i) < row, (i) => -bars.row(i) * 1e9 + away(i));
  return next < 0 ? at : next;
}
