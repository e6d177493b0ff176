// What rankine run measured on threads, dropped on the page: the file's own question is what is shown then.
import { useState } from 'preact/hooks';
import type { Json } from './engine';
import { duration } from './format';
import { set } from './state';

/** The ends of rounds as measured, in seconds of the modelled network; in the link as numbers with commas. */
export const wallEnds = (text: string): number[] => (text ? text.split(',').map(Number) : []);

/** What a file sets on the page, or why it cannot. */
function settings(text: string): Record<string, string | undefined> | string {
  let run: Json;
  try {
    run = JSON.parse(text);
  } catch {
    return 'This is no JSON; rankine run --clock wall --rounds --json writes what is read here.';
  }
  if (run?.clock !== 'wall' || !Array.isArray(run.rounds) || !(run.dilate > 0)) {
    return 'This has no wall measurements of rounds; rankine run --clock wall --rounds --json writes them.';
  }
  // Of rounds in which nobody waited nothing was measured.
  const ends = run.rounds.map((round: Json) => Number((round.measured / run.dilate).toPrecision(5)));
  return {
    'player.c': run.collective, 'player.a': run.algorithm, 'player.n': String(run.ranks), 'player.p': run.segments > 1 ? String(run.segments) : undefined,
    'player.root': run.root > 0 ? String(run.root) : undefined, 'player.dims': run.dims, 'player.k': undefined, 'player.e': undefined,
    'timeline.m': String(run.bytes), 'timeline.net': run.network, 'timeline.ports': String(run.ports), 'timeline.sync': run.sync,
    'timeline.alpha': undefined, 'timeline.bw': undefined, 'timeline.wiring': undefined, 'timeline.dims': undefined,
    'timeline.wall': ends.join(','),
  };
}

export function WallFile({ ends, time }: { ends: number[]; time?: number }) {
  const [wrong, tell] = useState('');
  const [over, setOver] = useState(false);
  const read = async (file?: File) => {
    if (!file) return;
    const found = settings(await file.text());
    tell(typeof found === 'string' ? found : '');
    if (typeof found !== 'string') set(found);
  };
  const last = Math.max(0, ...ends);
  return (
    <div class={'drop' + (over ? ' over' : '')}
      onDragOver={(e) => (e.preventDefault(), setOver(true))} onDragLeave={() => setOver(false)}
      onDrop={(e) => (e.preventDefault(), setOver(false), read(e.dataTransfer?.files[0]))}>
      <label>Drop here, or choose, what <code>rankine run ... --clock wall --rounds --json</code> wrote:{' '}
        <input type="file" accept=".json,application/json" onChange={(e) => {
          const file = e.currentTarget.files?.[0];
          e.currentTarget.value = ''; // so that the same file can be chosen anew
          read(file);
        }} />
      </label>
      {wrong && <p class="error" role="status">{wrong}</p>}
      {ends.length > 0 && (
        <p role="status">
          Measured on threads, the last round ended after {duration(last)} of the network’s time{time ? `, ${(100 * (last / time - 1)).toFixed(2)} % later than predicted` : ''}; dashed lines are the ends of rounds.{' '}
          <button onClick={() => set({ 'timeline.wall': undefined })}>Away with it</button>
        </p>
      )}
    </div>
  );
}
