// Plays one algorithm round by round, and shows the verifier's answer to the visitor's changes.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Json } from './engine';
import { runs, size, words } from './format';
import { Arrows } from './arrows';
import { Grid } from './grid';
import { calm, Choice, Computed, errorIn, errorOf, number, otherErrors, Section, Slider, Text, useAnswer } from './parts';
import { CollectiveChoice, lineOf, linesOf, type Catalogue } from './setting';
import { States } from './states';
import { Word } from './words';
import { useParam } from './state';

export function usePlayed(catalogue: Catalogue) {
  const [collective, setCollective] = useParam('player.c', 'all_reduce');
  const [algorithm, setAlgorithm] = useParam('player.a', 'halving_doubling');
  const [n, setN] = useParam('player.n', '8');
  const [segments, setSegments] = useParam('player.p', '1');
  const [root, setRoot] = useParam('player.root', '0');
  const [dims, setDims] = useParam('player.dims', '');
  const [round, setRound] = useParam('player.k', '0');
  const [edits, setEdits] = useParam('player.e', '[]');
  const line = lineOf(catalogue, collective, algorithm) ?? linesOf(catalogue, collective)[0];
  const takes = (name: string) => (line?.parameters ?? []).includes(name);
  const rooted = !!catalogue.collectives.find((one) => one.name === collective)?.rooted;
  const question = {
    collective, algorithm: line?.name, ranks: number(n), bytes: '1M',
    ...(takes('segments') ? { segments: number(segments) } : {}), ...(rooted && root !== '0' ? { root: number(root) } : {}),
    ...(takes('dims') && dims ? { params: { dims } } : {}),
  };
  return { collective, setCollective, algorithm: line?.name as string, setAlgorithm, n, setN, segments, setSegments, root, setRoot, dims, setDims, round, setRound, edits, setEdits, line, takes, rooted, question };
}

/** Reads edits from a link. */
export function editsOf(text: string): Json[] {
  try {
    return JSON.parse(text);
  } catch {
    return [];
  }
}

const transferText = (t: Json): string =>
  `${runs(t.from)} → ${runs(t.to)} ${t.act === 'reduce' ? 'adds' : 'copies'} ${t.what.length > 1 ? 'blocks' : 'block'} ${runs(t.what)}`;

export function Editor(props: { states: States; round: number; edits: Json[]; set: (edits: Json[]) => void }) {
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
      {props.edits.length > 0 && <p><button onClick={() => props.set(props.edits.slice(0, -1))}>Undo</button> <button onClick={() => props.set([])}>Undo all</button></p>}
    </details>
  );
}

/** The engine counts rounds from 0, the page from 1. */
export const Counted = ({ round }: { round: number }) => (round >= 0 ? <span class="counted"> (This text counts rounds from 0: its round {round} is round {round + 1} above.)</span> : null);

export function Proof({ proof, ranks }: { proof: Json; ranks: number }) {
  return proof.proved ? (
    <p class="proof good" role="status"><b>Proved</b> for N = {ranks}: each block arrives complete, each contribution counts once, and no message reads data that are not there.</p>
  ) : (
    <p class="proof bad" role="status"><b>Broken: {words(proof.kind)}.</b> {proof.text}<Counted round={proof.round} /></p>
  );
}

/** The bytes that each rank sends of a vector of 1 MiB, and the lower bound for the busiest rank. */
function BytesPerRank({ sent, least, rank }: { sent: number[]; least: number; rank: number }) {
  const most = Math.max(least, ...sent) || 1;
  return (
    <figure class="card sent">
      <span class="bars" role="img" aria-label={`bytes that each rank sends: ${[...new Set(sent)].map(size).join(', ')}; the least for the busiest: ${size(least)}`}>
        {sent.map((bytes, r) => <i class={r === rank ? 'picked' : ''} style={{ height: `${(100 * bytes) / most}%` }} title={`rank ${r}: ${size(bytes)}`} />)}
        <span class="least" style={{ bottom: `${(100 * least) / most}%` }} />
      </span>
      <figcaption>What each rank sends of a vector of 1 MiB{rank >= 0 && `; rank ${rank} ${size(sent[rank])}`}: {size(Math.max(...sent))} at most. The dashed line is the lower bound: in any algorithm some rank sends at least {size(least)}.</figcaption>
    </figure>
  );
}

export function Player({ catalogue }: { catalogue: Catalogue }) {
  const p = usePlayed(catalogue);
  const [layout, setLayout] = useParam('player.layout', 'auto');
  const [follow, setFollow] = useParam('player.rank', '-1');
  const [speed, setSpeed] = useState('1');
  const [playing, play] = useState(false);
  const edits = useMemo(() => editsOf(p.edits), [p.edits]);
  const answer = useAnswer({ ask: 'play', question: p.question, ...(edits.length > 0 ? { edits } : {}) });
  const cost = useAnswer({ ask: 'simulate', question: p.question });
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
  const errors = [errorIn(answer)];
  return (
    <Section id="player" title="The player" lead={<>One algorithm, <Word of="round" /> by round: which <Word of="rank" /> sends which <Word of="block" /> to which rank, and whose <Word of="contribution">contributions</Word> each rank holds. The <Word of="proof" /> below is computed for what you see.</>}>
      <div class="controls">
        <CollectiveChoice catalogue={catalogue} value={p.collective} set={(value) => (p.setCollective(value), p.setAlgorithm(linesOf(catalogue, value)[0].name), p.setEdits('[]'), go(0))} />
        <Choice label="algorithm" value={p.algorithm} set={(value) => (p.setAlgorithm(value), p.setEdits('[]'), go(0))} of={linesOf(catalogue, p.collective).map((line) => line.name)} />
        <Slider label="N, ranks" word="N" value={p.n} set={(value) => (p.setN(value), p.setEdits('[]'))} least={2} most={64} error={errorOf('ranks', errors)} />
        {p.takes('segments') && <Text label="segments" word="segment" value={p.segments} set={p.setSegments} error={errorOf('segments', errors)} />}
        {p.takes('dims') && <Text label="sizes of the torus, 3x3" value={p.dims} set={p.setDims} placeholder="a ring" error={errorOf('dims', errors)} />}
        {p.rooted && <Text label="root" word="root" value={p.root} set={p.setRoot} error={errorOf('root', errors)} />}
        <Choice label="drawn as" value={layout} set={setLayout} of={[['auto', 'what suits it'], ['circle', 'a circle'], ['line', 'a line'], ['tree', 'a tree'], ['grid', 'a torus']]} />
      </div>
      <p class="note">{p.line?.summary}. {p.line?.citation}.</p>
      {otherErrors(errors).map((text) => <p class="error" role="status">{text}</p>)}
      <Computed of={[answer]}>{states && (
        <>
          <div class="transport">
            <button aria-label="to the start" onClick={() => (play(false), go(0))}>|◀</button>
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
            <Computed of={[cost]}><BytesPerRank sent={cost.json.sent} least={cost.json.least_bytes} rank={rank} /></Computed>
          )}
          <details><summary>This round in words</summary><ul class="transfers">{transfers.slice(0, 64).map((t) => <li>{transferText(t)}</li>)}</ul></details>
          <Editor states={states} round={round} edits={edits} set={(next) => p.setEdits(JSON.stringify(next))} />
        </>
      )}</Computed>
    </Section>
  );
}
