// Reads measurements of rankine run on threads that the visitor drops on the page, and shows the file's question.
import { useEffect, useState } from 'preact/hooks';
import { ask, type Json } from './engine';
import { duration, words } from './format';
import { goTo, set } from './state';

/** The subject and the length of a timeline, in seconds of the modelled network like all timelines here. */
export interface Shown {
  of: string; // all_reduce.ring.8
  time: number;
}
/** Measurements as the link contains them, with commas between the members. */
export interface Wall extends Shown {
  ends: number[]; // measured ends of rounds; 0 if no rank waited
}
export const wallOf = (text: string): Wall | undefined => {
  const [of, ...rest] = text.split(','), [time, ...ends] = rest.map(Number);
  return text && [time, ...ends].every((one) => one >= 0) ? { of, time, ends } : undefined;
};

/** The measured ends to draw over a timeline; empty if the run has another subject. */
export const wallOver = (wall: Wall | undefined, shown: Shown | undefined): number[] =>
  wall && shown && wall.of === shown.of && Math.abs(wall.time - shown.time) <= 2e-5 * shown.time ? wall.ends : [];

const command = 'rankine run ... --clock wall --rounds --json';
const most = 1 << 20;

/** The settings in a file, or the reason why the page cannot show it. */
async function settings(file: File): Promise<Record<string, string | undefined> | string> {
  if (file.size > most) return `${file.name} has ${file.size} bytes; allowed are ${most} bytes. Drop a file that ${command} wrote.`;
  let run: Json;
  try {
    run = JSON.parse(await file.text());
  } catch {
    return `${file.name} is not JSON; drop a file that ${command} wrote.`;
  }
  const rounds: Json[] = Array.isArray(run?.rounds) ? run.rounds : [];
  if (run?.clock !== 'wall' || !(run.dilate > 0) || !(run.predicted >= 0) || !rounds.every((round) => round?.measured >= 0) || rounds.length === 0) {
    return `${file.name} has no wall measurements of rounds; drop a file that ${command} wrote.`;
  }
  // A name's suffix says that an option changes the preset.
  const network = String(run.network).replace(/ \(changed\)$/, '');
  const { json } = await ask({
    ask: 'simulate', question: {
      collective: run.collective, algorithm: run.algorithm, ranks: run.ranks, bytes: run.bytes, network, ports: run.ports, sync: run.sync, segments: run.segments ?? 1,
      ...(run.root > 0 ? { root: run.root } : {}), ...(run.dims ? { params: { dims: run.dims } } : {}),
    },
  });
  if (json.error) return `${file.name} is of a run that this page cannot show: ${json.error}`;
  if (json.round_end.length !== rounds.length) return `${file.name} has ${rounds.length} rounds, and ${run.algorithm} among ${run.ranks} ranks has ${json.round_end.length}.`;
  // The text if an option of the run set the member; the page has no control for other members of networks.
  const own = (member: string, text: string): string | undefined => (run[member] === undefined || run[member] === json[member] ? undefined : text);
  return {
    'player.c': run.collective, 'player.a': run.algorithm, 'player.n': String(run.ranks), 'player.p': run.segments > 1 ? String(run.segments) : undefined,
    'player.root': run.root > 0 ? String(run.root) : undefined, 'player.dims': run.dims, 'player.k': undefined, 'player.e': undefined,
    'timeline.m': String(run.bytes), 'timeline.net': network, 'timeline.ports': String(run.ports), 'timeline.sync': run.sync, 'timeline.dims': undefined,
    'timeline.alpha': own('alpha', `${run.alpha}s`), 'timeline.bw': own('beta', `${Number((1 / run.beta).toPrecision(12))}B/s`), 'timeline.wiring': own('wiring', run.wiring),
    'timeline.wall': [`${run.collective}.${run.algorithm}.${run.ranks}`, ...[run.predicted, ...rounds.map((round) => round.measured / run.dilate)].map((one) => Number(one.toPrecision(6)))].join(','),
  };
}

export function WallFile({ wall, shown }: { wall?: Wall; shown?: Shown }) {
  const [wrong, tell] = useState('');
  const [hovering, hover] = useState(false);
  const read = async (file?: File) => {
    if (!file) return;
    const found = await settings(file);
    tell(typeof found === 'string' ? found : '');
    if (typeof found !== 'string') set(found);
  };
  // Accepts a drop anywhere on the page; without this the browser opens the file instead of the page.
  useEffect(() => {
    const drag = (e: DragEvent) => e.dataTransfer?.types.includes('Files') && (e.preventDefault(), hover(true));
    const leave = (e: DragEvent) => e.relatedTarget === null && hover(false);
    const drop = (e: DragEvent) => {
      if (!e.dataTransfer?.types.includes('Files')) return;
      e.preventDefault();
      hover(false);
      goTo('timeline');
      read(e.dataTransfer.files[0]);
    };
    addEventListener('dragover', drag);
    addEventListener('dragleave', leave);
    addEventListener('drop', drop);
    return () => (removeEventListener('dragover', drag), removeEventListener('dragleave', leave), removeEventListener('drop', drop));
  }, []);
  const over = wallOver(wall, shown), last = Math.max(0, ...over), time = shown?.time ?? 0;
  const away = <button onClick={() => set({ 'timeline.wall': undefined })}>Remove it</button>;
  return (
    <div class={'drop' + (hovering ? ' over' : '')}>
      <label>Drop the output of <code>{command}</code> on the page, or choose the file here:{' '}
        <input type="file" accept=".json,application/json" onChange={(e) => {
          const file = e.currentTarget.files?.[0];
          e.currentTarget.value = ''; // so that the visitor can choose the file again
          read(file);
        }} />
      </label>
      {wrong && <p class="error" role="status">{wrong}</p>}
      {wall && shown && over.length === 0 && (
        <p class="error" role="status">
          The dropped run is {words(wall.of.replaceAll('.', ', '))} ranks and was predicted to take {duration(wall.time)}. The timeline above is of another algorithm, or of other ranks, bytes or another network, and takes {duration(time)}. {away}
        </p>
      )}
      {over.length > 0 && (
        <p role="status">
          Measured on threads, the last round ended after {duration(last)} of the network’s time{time ? `, ${Math.abs(100 * (last / time - 1)).toFixed(2)} % ${last < time ? 'earlier' : 'later'} than predicted` : ''}; dashed lines are the ends of rounds. {away}
        </p>
      )}
    </div>
  );
}
