// Draws the timeline: every port of every rank over time, for the player's algorithm.
import { useState } from 'preact/hooks';
import { barAt, barBy, type Bars } from './bars';
import { duration, size, words } from './format';
import { Bytes, Canvas, Choice, colour, Computed, errorIn, errorOf, otherErrors, Section, useAnswer } from './parts';
import { useNetwork, type Catalogue } from './setting';
import { usePlayed } from './player';
import { useParam } from './state';
import { Word } from './words';
import { WallFile, wallOf, wallOver } from './wall';

const columns = 11;

export function Timeline({ catalogue }: { catalogue: Catalogue }) {
  const p = usePlayed(catalogue);
  const [m, setM] = useParam('timeline.m', '1M');
  const [sync, setSync] = useParam('timeline.sync', 'dataflow');
  const [side, setSide] = useParam('timeline.side', 'send');
  const [wall] = useParam('timeline.wall', '');
  const network = useNetwork('timeline');
  const answer = useAnswer({ ask: 'messages', question: { ...p.question, bytes: m, sync, ...network.members } });
  const [at, setAt] = useState(-1);
  const json = answer?.json, error = json?.error as string | undefined, errors = [errorIn(answer)];
  const messages = answer?.numbers ?? new Float64Array();
  const ports: number = json && !error ? Math.max(1, Math.min(json.ports, json.ports_needed)) : 1;
  const rows = json && !error ? json.ranks * ports : 0;
  const tall = rows > 128 ? 4 : rows > 48 ? 8 : rows > 24 ? 14 : 20;
  const left = 34;
  const rowOf = (i: number) => (side === 'send' ? messages[i + 2] * ports + Math.min(ports - 1, messages[i + 7]) : messages[i + 3] * ports + Math.min(ports - 1, messages[i + 8]));
  const drawn = json && !error ? { of: `${p.collective}.${p.algorithm}.${json.ranks}`, time: json.time } : undefined;
  const run = wallOf(wall), measured = wallOver(run, drawn);
  const until = Math.max(json?.time ?? 0, ...measured); // the time at the right edge
  let shown = 300;
  const bars: Bars = { count: messages.length / columns, row: (k) => rowOf(k * columns), begin: (k) => messages[k * columns + 5], end: (k) => messages[k * columns + 6] };
  const textOf = (i: number): string =>
    `round ${messages[i] + 1}: ${messages[i + 2]} → ${messages[i + 3]}, ${size(messages[i + 4])}, from ${duration(messages[i + 5])} to ${duration(messages[i + 6])}${messages[i + 7] >= 0 ? `, port ${messages[i + 7]} to port ${messages[i + 8]}` : ''}`;
  const play = (bar: number) => p.setRound(String(messages[bar * columns] + 1));
  return (
    <Section id="timeline" title="The timeline" lead={<>The player’s algorithm on a <Word of="network" />: each bar is a message, which keeps a <Word of="port" /> busy from its start to its end. With one port, messages that could overlap go one after the other; give the ranks more ports and compare.</>}>
      <div class="controls">
        <Bytes value={m} set={setM} error={errorOf('bytes', errors)} />
        <Choice label="a message waits for" word="dataflow" value={sync} set={setSync} of={[['dataflow', 'its data'], ['rounds', 'the whole round before']]} />
        <Choice label="ports that" value={side} set={setSide} of={['send', 'receive']} />
        {network.controls(catalogue, errors)}
      </div>
      {otherErrors(errors).map((text) => <p class="error" role="status">{text}</p>)}
      <Computed of={[answer]}>{json && !error && (
        <>
          <p class="verdict"><b>{words(p.algorithm)}</b> takes {duration(json.time)}. It {json.budget}. <span class="note">{json.words}.</span></p>
          <p class="buttons">
            <button onClick={() => network.setPorts(String(json.ports_needed))}>Case A: as many ports as it can use</button>
            {json.ports_needed > 1 && <button onClick={() => network.setPorts('1')}>Case B: one port</button>}
          </p>
          <figure class="card">
            <Canvas height={rows * tall + 30} label={`${json.messages} messages of ${json.ranks} ranks over ${duration(json.time)}`}
              onPoint={(x, y, click) => {
                const bar = barAt(bars, Math.floor((y - 4) / tall), ((x - left) / (shown - left - 8)) * until);
                if (bar < 0) return;
                setAt(bar);
                if (click) play(bar);
              }}
              onKey={(e) => {
                const next = barBy(bars, at, e.key);
                if (next === undefined && !(e.key === 'Enter' && at >= 0)) return;
                e.preventDefault();
                if (next === undefined) play(at);
                else setAt(next);
              }}
              draw={(g, width) => {
                shown = width;
                const scale = (width - left - 8) / (until || 1), round = Number(p.round) - 1;
                g.font = '11px system-ui';
                g.textBaseline = 'middle';
                g.fillStyle = colour('soft');
                for (let r = 0; r < json.ranks; ++r) {
                  if (tall * ports >= 10 || r % 8 === 0) g.fillText(String(r), 8, 4 + (r * ports + ports / 2) * tall);
                  g.fillRect(left, 4 + r * ports * tall - 0.5, width - left, 0.5);
                }
                for (let i = 0; i < messages.length; i += columns) {
                  const k = messages[i];
                  g.fillStyle = `hsl(${(k * 47 + 205) % 360} 62% ${round >= 0 && k !== round ? 72 : 50}%)`;
                  g.globalAlpha = round >= 0 && k !== round ? 0.6 : 1;
                  g.fillRect(left + messages[i + 5] * scale, 5 + rowOf(i) * tall, Math.max(1, (messages[i + 6] - messages[i + 5]) * scale - 1), tall - 2);
                }
                g.globalAlpha = 1;
                if (at >= 0 && at < bars.count) {
                  g.strokeStyle = colour('ink');
                  g.lineWidth = 2;
                  g.strokeRect(left + bars.begin(at) * scale, 5 + bars.row(at) * tall, Math.max(1, (bars.end(at) - bars.begin(at)) * scale - 1), tall - 2);
                }
                g.strokeStyle = colour('bad');
                g.lineWidth = 1.5;
                g.setLineDash([5, 4]);
                for (const end of measured.filter((one) => one > 0)) {
                  g.beginPath();
                  g.moveTo(left + end * scale, 2);
                  g.lineTo(left + end * scale, rows * tall + 6);
                  g.stroke();
                }
                g.setLineDash([]);
                g.fillStyle = colour('soft');
                for (let t = 0; t <= 4; ++t) {
                  g.textAlign = t === 0 ? 'left' : t === 4 ? 'right' : 'center';
                  g.fillText(duration((until * t) / 4), left + (width - left - 8) * (t / 4), rows * tall + 20);
                }
                g.textAlign = 'left';
              }} />
            <figcaption class="readout" role="status">{at >= 0 && at < bars.count ? textOf(at * columns) : 'Each round has a colour; the player’s round is the strongest. Point at a bar, or use the arrow keys, to read it. A click, or Enter, moves the player to its round.'}</figcaption>
          </figure>
        </>
      )}</Computed>
      <WallFile wall={run} shown={drawn} />
    </Section>
  );
}
