// Shows the contents of all ranks after a round: a row for each rank, a column for each place.
import { useState } from 'preact/hooks';
import { runs } from './format';
import { Canvas, colour } from './parts';
import type { States } from './states';

export function Grid(props: { states: States; round: number; rank: number; pick?: (rank: number) => void }) {
  const { states, round } = props;
  const [at, setAt] = useState<[number, number] | undefined>();
  const side = (width: number) => Math.max(3, Math.min(120, (width - 34) / states.places));
  const tall = (width: number) => Math.min(34, Math.max(3, side(width)));
  const cell = at && at[0] < states.ranks && at[1] < states.places ? states.cell(round, at[0], at[1]) : undefined;
  const move = (x: number, y: number) => setAt([Math.max(0, Math.min(states.ranks - 1, (at?.[0] ?? 0) + y)), Math.max(0, Math.min(states.places - 1, (at?.[1] ?? -1) + x))]);
  return (
    <div>
      <Canvas height={(width) => 18 + states.ranks * tall(width)} label={`what each of ${states.ranks} ranks holds of ${states.places} blocks; arrow keys tell each`}
        onPoint={(x, y, click) => {
          const width = latestWidth;
          const place = Math.floor((x - 30) / side(width)), rank = Math.floor((y - 18) / tall(width));
          if (place < 0 || rank < 0 || rank >= states.ranks || place >= states.places) return;
          setAt([rank, place]);
          if (click) props.pick?.(rank);
        }}
        onKey={(e) => {
          const step = ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] } as Record<string, [number, number]>)[e.key];
          if (step) (e.preventDefault(), move(...step));
        }}
        draw={(g, width) => {
          latestWidth = width;
          const w = side(width), h = tall(width), gap = w > 8 ? 2 : w > 4 ? 1 : 0;
          const [empty, part, done, written, ink, on, soft] = ['empty', 'part', 'done', 'written', 'ink', 'on', 'soft'].map(colour);
          g.textBaseline = 'middle';
          g.textAlign = 'center';
          g.font = '11px system-ui';
          g.fillStyle = soft;
          if (w >= 14) for (let b = 0; b < states.places; ++b) g.fillText(String(b % states.json.blocks) + (b >= states.json.blocks ? '′' : ''), 30 + b * w + w / 2, 9);
          for (let r = 0; r < states.ranks; ++r) {
            const y = 18 + r * h;
            g.globalAlpha = props.rank < 0 || props.rank === r ? 1 : 0.35;
            g.fillStyle = soft;
            if (h >= 10 || r % 8 === 0) g.fillText(String(r), 14, y + h / 2);
            for (let b = 0; b < states.places; ++b) {
              const c = states.cell(round, r, b);
              const x = 30 + b * w;
              g.fillStyle = empty;
              g.fillRect(x, y, w - gap, h - gap);
              if (c.ranks.length > 0) {
                g.fillStyle = c.complete ? done : part;
                const before = g.globalAlpha;
                if (!c.complete) g.globalAlpha = before * (0.3 + (0.7 * c.ranks.length) / states.ranks);
                g.fillRect(x, y, w - gap, h - gap);
                g.globalAlpha = before;
              }
              if (c.written && w > 5) {
                g.strokeStyle = written;
                g.lineWidth = 2;
                g.strokeRect(x + 1, y + 1, w - gap - 2, h - gap - 2);
              }
              const text = states.text(c);
              if (text && w >= 24 && text.length * 6 < w) {
                g.fillStyle = c.complete ? on : ink;
                g.fillText(text, x + (w - gap) / 2, y + (h - gap) / 2);
              }
            }
          }
          g.globalAlpha = 1;
        }} />
      <p class="readout" role="status">
        {cell && at ? `rank ${at[0]}, block ${at[1] % states.json.blocks}${at[1] >= states.json.blocks ? ' (scratch)' : ''}: ${cell.ranks.length === 0 ? 'nothing' : `of ${runs(cell.ranks)}${cell.twice ? ', some twice' : ''}${cell.complete ? ', complete' : ''}${cell.needed ? ', needed here' : ''}`}` : 'A cell says whose contributions it holds: point at one, or use the arrow keys in the grid.'}
      </p>
    </div>
  );
}
let latestWidth = 300;
