// Draws a pipeline over time: the passes of every stage, as the engine played them.
import { useState } from 'preact/hooks';
import { barAt, barBy, type Bars } from './bars';
import { Canvas, colour } from './parts';
import { Word } from './words';

const columns = 6;
const passes: [string, string][] = [['forward', 'lane0'], ['backward', 'lane1'], ['weights', 'lane2']];

/** `numbers`: as answers.h describes for `plan`; `text` formats times. */
export function Passes({ numbers, stages, end, text }: { numbers: Float64Array; stages: number; end: number; text: (seconds: number) => string }) {
  const [at, setAt] = useState(-1);
  const tall = stages > 8 ? 16 : 24, left = 34;
  let shown = 300;
  const bars: Bars = { count: numbers.length / columns, row: (k) => numbers[k * columns], begin: (k) => numbers[k * columns + 4], end: (k) => numbers[k * columns + 5] };
  const textOf = (i: number): string => `stage ${numbers[i]}: ${passes[numbers[i + 1]][0]} of micro-batch ${numbers[i + 2]}, from ${text(numbers[i + 4])} to ${text(numbers[i + 5])}`;
  return (
    <>
      <Canvas height={stages * tall + 30} label={`${numbers.length / columns} passes of ${stages} stages over ${text(end)}`}
        onPoint={(x, y) => {
          const bar = barAt(bars, Math.floor((y - 4) / tall), ((x - left) / (shown - left - 8)) * end);
          if (bar >= 0) setAt(bar);
        }}
        onKey={(e) => {
          const next = barBy(bars, at, e.key);
          if (next === undefined) return;
          e.preventDefault();
          setAt(next);
        }}
        draw={(g, width) => {
          shown = width;
          const scale = (width - left - 8) / (end || 1);
          g.font = '11px system-ui';
          g.textBaseline = 'middle';
          for (let s = 0; s < stages; ++s) {
            g.fillStyle = colour('soft');
            g.fillText(String(s), 8, 4 + (s + 0.5) * tall);
          }
          for (let i = 0; i < numbers.length; i += columns) {
            const wide = Math.max(1, (numbers[i + 5] - numbers[i + 4]) * scale - 1), x = left + numbers[i + 4] * scale, y = 5 + numbers[i] * tall;
            g.fillStyle = colour(passes[numbers[i + 1]][1]);
            g.fillRect(x, y, wide, tall - 2);
            // Writes the micro-batch's number if there is room.
            if (wide < 14 || tall < 20) continue;
            g.fillStyle = colour('card');
            g.textAlign = 'center';
            g.fillText(String(numbers[i + 2]), x + wide / 2, y + tall / 2);
            g.textAlign = 'left';
          }
          if (at >= 0 && at < bars.count) {
            g.strokeStyle = colour('ink');
            g.lineWidth = 2;
            g.strokeRect(left + bars.begin(at) * scale, 5 + bars.row(at) * tall, Math.max(1, (bars.end(at) - bars.begin(at)) * scale - 1), tall - 2);
          }
          g.fillStyle = colour('soft');
          for (let t = 0; t <= 4; ++t) {
            g.textAlign = t === 0 ? 'left' : t === 4 ? 'right' : 'center';
            g.fillText(text((end * t) / 4), left + (width - left - 8) * (t / 4), stages * tall + 20);
          }
          g.textAlign = 'left';
        }} />
      <ul class="legend">{passes.map(([name, lane]) => <li class={lane}>{name}</li>)}</ul>
      <p class="readout" role="status">{at >= 0 && at < bars.count ? textOf(at * columns) : <>A row is a stage; gaps are the <Word of="bubble" />. Point at a pass, or use the arrow keys, to read it.</>}</p>
    </>
  );
}
