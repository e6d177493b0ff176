// The player: one algorithm round by round, and the verifier's answer to what the visitor makes of it.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Json } from './engine';
import { runs, size, words } from './format';
import { calm, Canvas, Choice, colour, errorOf, number, otherErrors, positions, Section, Slider, Text, useAnswer } from './parts';
import { CollectiveChoice, lineOf, linesOf, type Catalogue } from './setting';
import { States } from './states';
import { useParam } from './state';

const mostDrawn = 32; // ranks as SVG; beyond, a canvas

export function usePlayed(catalogue: Catalogue) {
  const [collective, setCollective] = useParam('player.c', 'all_reduce');
  const [algorithm, setAlgorithm] = useParam('player.a', 'recursive_doubling');
  const [n, setN] = useParam('player.n', '8');
  const [segments, setSegments] = useParam('player.p', '1');
  const [root, setRoot] = useParam('player.root', '0');
  const [round, setRound] = useParam('player.k', '0');
  const [edits, setEdits] = useParam('player.e', '[]');
  const line = lineOf(catalogue, collective, algorithm) ?? linesOf(catalogue, collective)[0];
  const takes = (name: string) => (line?.parameters ?? []).includes(name);
  const rooted = !!catalogue.collectives.find((one) => one.name === collective)?.rooted;
  const question = {
    collective, algorithm: line?.name, ranks: number(n), bytes: '1M',
    ...(takes('segments') ? { segments: number(segments) } : {}), ...(rooted && root !== '0' ? { root: number(root) } : {}),
  };
  return { collective, setCollective, algorithm: line?.name as string, setAlgorithm, n, setN, segments, setSegments, root, setRoot, round, setRound, edits, setEdits, line, takes, rooted, question };
}

const transferText = (t: Json): string =>
  `${runs(t.from)} → ${runs(t.to)} ${t.act === 'reduce' ? 'adds' : 'copies'} ${t.what.length > 1 ? 'blocks' : 'block'} ${runs(t.what)}`;

function Arrows(props: { states: States; round: number; layout: string; rank: number; pick: (rank: number) => void }) {
  const { states, round } = props;
  const place = positions(props.layout, states.ranks).map(([x, y]) => [x * 400, y * 400]);
  const radius = Math.max(4, Math.min(17, 440 / states.ranks));
  const transfers: Json[] = round > 0 ? states.json.transfers[round - 1] : [];
  const label = `round ${round} of ${states.rounds}: ${transfers.length} transfers`;
  const pairs = transfers.flatMap((t) => t.from.flatMap((from: number) => t.to.map((to: number) => ({ from, to, act: t.act, what: t.what })))).filter((p: any) => p.from !== p.to);
  const mine = (p: any) => props.rank < 0 || p.from === props.rank || p.to === props.rank;
  if (states.ranks > mostDrawn) {
    return (
      <Canvas height={(width) => Math.min(width, 460)} label={label} draw={(g, width, height) => {
        const side = Math.min(width, height);
        const at = (r: number) => [(width - side) / 2 + (place[r][0] / 400) * side, (place[r][1] / 400) * side];
        for (const p of pairs) {
          const [ax, ay] = at(p.from), [bx, by] = at(p.to);
          g.strokeStyle = colour(p.act === 'reduce' ? 'reduce' : 'copy');
          g.globalAlpha = mine(p) ? 0.8 : 0.15;
          g.beginPath();
          g.moveTo(ax, ay);
          g.lineTo(bx, by);
          g.stroke();
        }
        g.globalAlpha = 1;
        g.fillStyle = colour('ink');
        for (let r = 0; r < states.ranks; ++r) {
          const [x, y] = at(r);
          g.beginPath();
          g.arc(x, y, r === props.rank ? 5 : 2.5, 0, 7);
          g.fill();
        }
      }} />
    );
  }
  const path = (from: number, to: number) => {
    const [ax, ay] = place[from], [bx, by] = place[to];
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const ux = (bx - ax) / length, uy = (by - ay) / length;
    // A little to the right, so that two that exchange do not lie on each other.
    const bend = props.layout === 'circle' ? Math.min(26, length * 0.12) : Math.min(90, length * 0.35);
    const cx = (ax + bx) / 2 - uy * bend, cy = (ay + by) / 2 + ux * bend;
    const ex = bx - cx, ey = by - cy, e = Math.hypot(ex, ey) || 1;
    const sx = cx - ax, sy = cy - ay, s = Math.hypot(sx, sy) || 1;
    return `M${ax + (sx / s) * radius},${ay + (sy / s) * radius} Q${cx},${cy} ${bx - (ex / e) * (radius + 7)},${by - (ey / e) * (radius + 7)}`;
  };
  return (
    <svg class="arrows" viewBox="-10 -10 420 420" role="group" aria-label={label}>
      <defs>
        {['copy', 'reduce'].map((act) => (
          <marker id={'head-' + act} viewBox="0 0 8 8" refX="2" refY="4" markerWidth="4.5" markerHeight="4.5" orient="auto"><path class={act + ' head'} d="M0,0 L8,4 L0,8 z" /></marker>
        ))}
      </defs>
      {pairs.map((p: any) => <path class={'move ' + p.act + (mine(p) ? '' : ' dim')} d={path(p.from, p.to)} marker-end={`url(#head-${p.act})`} />)}
      {place.map(([x, y], r) => (
        <g class={'rank' + (r === props.rank ? ' picked' : '')} role="button" tabIndex={0} aria-label={`rank ${r}`} aria-pressed={r === props.rank}
          onClick={() => props.pick(r === props.rank ? -1 : r)} onKeyDown={(e) => (e.key === 'Enter' || e.key === ' ') && (e.preventDefault(), props.pick(r === props.rank ? -1 : r))}>
          <circle cx={x} cy={y} r={radius} />
          <text x={x} y={y} dy="0.35em" style={{ fontSize: Math.max(7, radius * 0.85) + 'px' }}>{r}</text>
        </g>
      ))}
    </svg>
  );
}

export function Grid(props: { states: States; round: number; rank: number; pick?: (rank: number) => void }) {
  const { states, round } = props;
  const [at, setAt] = useState<[number, number] | undefined>();
  const side = (width: number) => Math.max(3, Math.min(44, (width - 34) / states.places));
  const tall = (width: number) => Math.min(34, side(width));
  const cell = at && at[0] < states.ranks && at[1] < states.places ? states.cell(round, at[0], at[1]) : undefined;
  const move = (x: number, y: number) => setAt([Math.max(0, Math.min(states.ranks - 1, (at?.[0] ?? 0) + y)), Math.max(0, Math.min(states.places - 1, (at?.[1] ?? -1) + x))]);
  return (
    <div>
      <Canvas height={(width) => 18 + states.ranks * tall(width)} label={`what each of ${states.ranks} ranks holds of ${states.places} blocks; arrow keys tell each`}
        onPoint={(x, y, click) => {
          const canvas = document.activeElement;
          void canvas;
          const width = props.states && latestWidth;
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

function Editor(props: { states: States; round: number; edits: Json[]; set: (edits: Json[]) => void }) {
  const { states, round } = props;
  const [to, setTo] = useState('0');
  const transfers: Json[] = round > 0 ? states.json.transfers[round - 1] : [];
  const add = (edit: Json) => props.set([...props.edits, edit]);
  return (
    <details class="editor">
      <summary>Change the schedule{props.edits.length > 0 && ` (${props.edits.length} ${props.edits.length === 1 ? 'change' : 'changes'})`}</summary>
      <p class="note">{round === 0 ? 'Go to a round: its transfers can be changed here, and the verifier answers at once.' : `Transfers of round ${round}:`}</p>
      {round > 0 && <Choice label="redirect to rank" value={to} set={setTo} of={Array.from({ length: states.ranks }, (_, r) => String(r))} />}
      <ul class="transfers">
        {transfers.slice(0, 64).map((t, i) => (
          <li>
            <span>{transferText(t)}</span>
            <button onClick={() => add({ do: 'delete', round: round - 1, transfer: i })}>Delete</button>
            <button onClick={() => add({ do: 'double', round: round - 1, transfer: i })}>Double</button>
            <button onClick={() => add({ do: 'redirect', round: round - 1, transfer: i, to: Number(to) })}>To {to}</button>
            {round < states.rounds && <button onClick={() => add({ do: 'move', round: round - 1, transfer: i, into: round })}>Later</button>}
          </li>
        ))}
      </ul>
      {transfers.length > 64 && <p class="note">and {transfers.length - 64} more</p>}
      {props.edits.length > 0 && <p><button onClick={() => props.set(props.edits.slice(0, -1))}>Undo</button> <button onClick={() => props.set([])}>All as it was</button></p>}
    </details>
  );
}

export function Proof({ proof, ranks }: { proof: Json; ranks: number }) {
  return proof.proved ? (
    <p class="proof good" role="status"><b>Proved</b> for N = {ranks}: every block arrives complete, every contribution counts once, nothing is read that is not there.</p>
  ) : (
    <p class="proof bad" role="status"><b>Broken: {words(proof.kind)}.</b> {proof.text}</p>
  );
}

export function Player({ catalogue }: { catalogue: Catalogue }) {
  const p = usePlayed(catalogue);
  const [layout, setLayout] = useParam('player.layout', 'circle');
  const [follow, setFollow] = useParam('player.rank', '-1');
  const [speed, setSpeed] = useState('1');
  const [playing, play] = useState(false);
  const edits: Json[] = useMemo(() => {
    try {
      return JSON.parse(p.edits);
    } catch {
      return [];
    }
  }, [p.edits]);
  const answer = useAnswer({ ask: 'play', question: p.question, ...(edits.length > 0 ? { edits } : {}) });
  const cost = useAnswer({ ask: 'simulate', question: p.question });
  const error = answer?.json.error as string | undefined;
  const states = useMemo(() => (answer && !answer.json.error ? new States(answer) : undefined), [answer]);
  const round = states ? Math.max(0, Math.min(states.rounds, Number(p.round) || 0)) : 0;
  const rank = states && Number(follow) < states.ranks ? Number(follow) : -1;
  const go = (k: number) => p.setRound(String(k));
  useEffect(() => {
    if (!playing || !states) return;
    const timer = setTimeout(() => (round < states.rounds ? go(round + 1) : play(false)), (calm ? 1600 : 1100) / Number(speed));
    return () => clearTimeout(timer);
  }, [playing, round, states, speed]);
  const transfers: Json[] = states && round > 0 ? states.json.transfers[round - 1] : [];
  const errors = [error];
  return (
    <Section id="player" title="The player" lead="One algorithm, round by round: who sends what to whom, and whose contributions everybody holds. The proof below is made while you look.">
      <div class="controls">
        <CollectiveChoice catalogue={catalogue} value={p.collective} set={(value) => (p.setCollective(value), p.setAlgorithm(linesOf(catalogue, value)[0].name), p.setEdits('[]'), go(0))} />
        <Choice label="algorithm" value={p.algorithm} set={(value) => (p.setAlgorithm(value), p.setEdits('[]'), go(0))} of={linesOf(catalogue, p.collective).map((line) => line.name)} />
        <Slider label="N, ranks" value={p.n} set={(value) => (p.setN(value), p.setEdits('[]'))} least={2} most={64} error={errorOf('ranks', errors)} />
        {p.takes('segments') && <Text label="segments" value={p.segments} set={p.setSegments} error={errorOf('segments', errors)} />}
        {p.rooted && <Text label="root" value={p.root} set={p.setRoot} error={errorOf('root', errors)} />}
        <Choice label="drawn as" value={layout} set={setLayout} of={[['circle', 'a circle'], ['line', 'a line'], ['grid', 'a grid']]} />
      </div>
      <p class="note">{p.line?.summary}. {p.line?.citation}.</p>
      {otherErrors(errors).map((text) => <p class="error" role="status">{text}</p>)}
      {states && (
        <>
          <div class="transport">
            <button aria-label="to the start" onClick={() => (play(false), go(0))}>⏮</button>
            <button aria-label="one round back" onClick={() => (play(false), go(Math.max(0, round - 1)))}>◀</button>
            <button class="main" onClick={() => (round >= states.rounds && go(0), play(!playing))}>{playing ? 'Pause' : 'Play'}</button>
            <button aria-label="one round on" onClick={() => (play(false), go(Math.min(states.rounds, round + 1)))}>▶</button>
            <input type="range" min={0} max={states.rounds} value={round} aria-label="round" aria-valuetext={`round ${round} of ${states.rounds}`} onInput={(e) => (play(false), go(Number(e.currentTarget.value)))} />
            <output>{round === 0 ? 'before the first round' : `after round ${round} of ${states.rounds}${states.phase(round - 1) ? ', ' + words(states.phase(round - 1)) : ''}`}</output>
            <Choice label="speed" value={speed} set={setSpeed} of={[['0.5', '½'], ['1', '1'], ['2', '2'], ['4', '4']]} />
            <Choice label="follow rank" value={String(rank)} set={setFollow} of={[['-1', 'all'], ...Array.from({ length: states.ranks }, (_, r) => [String(r), String(r)] as [string, string])]} />
          </div>
          <div class="stage">
            <figure class="card">
              <Arrows states={states} round={round} layout={layout} rank={rank} pick={(r) => setFollow(String(r))} />
              <figcaption><i class="key copy" /> copies <i class="key reduce" /> adds</figcaption>
            </figure>
            <figure class="card">
              <Grid states={states} round={round} rank={rank} pick={(r) => setFollow(String(r === rank ? -1 : r))} />
              <figcaption>Rows are ranks, columns are blocks. <i class="key part" /> partial sum <i class="key done" /> complete <i class="key written" /> written in this round</figcaption>
            </figure>
          </div>
          <Proof proof={states.json.proof} ranks={states.ranks} />
          {cost && !cost.json.error && edits.length === 0 && (
            <p class="note">The busiest rank sends {size(cost.json.sent_max)} of a vector of 1 MiB; what busbw counts as the least is {size(cost.json.least_bytes)}.</p>
          )}
          <details><summary>This round in words</summary><ul class="transfers">{transfers.slice(0, 64).map((t) => <li>{transferText(t)}</li>)}</ul></details>
          <Editor states={states} round={round} edits={edits} set={(next) => p.setEdits(JSON.stringify(next))} />
        </>
      )}
    </Section>
  );
}
