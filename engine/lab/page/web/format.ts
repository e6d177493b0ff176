// Formats the engine's numbers for people.
const scaled = (value: number, units: [number, string][]): string => {
  const [factor, unit] = units.find(([least]) => value >= least * 0.9995) ?? units[units.length - 1];
  const number = value / factor;
  return `${Number(number.toPrecision(number >= 1000 ? 4 : 3))} ${unit}`;
};

export const duration = (seconds: number): string =>
  seconds === 0 ? '0' : scaled(seconds, [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns'], [1e-12, 'ps']]);
export const size = (bytes: number): string =>
  bytes < 1 ? `${Number(bytes.toPrecision(3))} B` : scaled(bytes, [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB'], [1, 'B']]);
export const rate = (perSecond: number): string => scaled(perSecond, [[1e9, 'GB/s'], [1e6, 'MB/s'], [1e3, 'kB/s'], [1, 'B/s']]);
export const words = (name: string): string => name.replaceAll('_', ' ');

/** Sorted numbers as runs: 0..3, 6. */
export function runs(numbers: number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < numbers.length; ) {
    let j = i;
    while (j + 1 < numbers.length && numbers[j + 1] === numbers[j] + 1) ++j;
    parts.push(j - i > 1 ? `${numbers[i]}..${numbers[j]}` : numbers.slice(i, j + 1).join(','));
    i = j + 1;
  }
  return parts.join(',');
}
