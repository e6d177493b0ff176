// The timeline: every port of every rank over time, of what the player plays.
import { useState } from 'preact/hooks';
import { duration, size, words } from './format';
import { Bytes, Canvas, Choice, colour, errorOf, otherErrors, Section, useAnswer } from './parts';
import { useNetwork, type Catalogue } from './setting';
import { usePlayed } from './player';
import { useParam } from './state';
import { wallEnds, WallFile } from './wall';

const columns = 11;

export function Timeline({ catalogue }: { catalogue: Catalogue }) {
  const p = usePlayed(catalogue);
  const [m, setM] = useParam('timeline.m', '1M');
  const [sync, setSync] = useParam('timeline.sync', 'dataflow');
  const [side, setSide] = useParam('timeline.side', 'send');
  const [wall] = useParam('timeline.wall', '');
  const network = useNetwork('timeline');
  const answer = useAnswer({ ask: 'messages', question: { ...p.question, bytes: m, sync, ...network.members } });
  const [told, tell] = useState('');
  const json = answer?.json, error = json?.error as string | undefined, errors = [error];
  const messages = answer?.numbers ?? new Float64Array();
  const ports: number = json && !error ? Math.max(1, Math.min(json.ports, json.ports_needed)) : 1;
  const rows = json && !error ? json.ranks * ports : 0;
  const tall = rows > 128 ? 4 : rows > 48 ? 8 : rows > 24 ? 14 : 20;
  const left = 34;
  const rowOf = (i: number) => (side === 'send' ? messages[i + 2] * ports + Math.min(ports - 1, messages[i + 7]) : messages[i + 3] * ports + Math.min(ports - 1, messages[i + 8]));
  const measured = wallEnds(wall);
  const until = Math.max(json?.time ?? 0, ...measured); // what the width stands for
  let shown = 300;
  const find = (x: number, y: number): number => {
    const row = Math.floor((y - 4) / tall), time = ((x - left) / (shown - left - 8)) * until;
    for (let i = 0; i < messages.length; i += columns) if (rowOf(i) === row && messages[i + 5] <= time && time < messages[i + 6]) return i;
    return -1;
  };
  return (
    <Section id="timeline" title="The timeline" lead={<>What the player plays, on a network: each bar is a message that holds a port from its start to its end. With one port what was to overlap becomes serial; give the ranks more ports, and see.</>}>
      <div class="controls">
        <Bytes value={m} set={setM} error={errorOf('bytes', errors)} />
        <Choice label="a message waits for" value={sync} set={setSync} of={[['dataflow', 'its data'], ['rounds', 'the whole round before']]} />
        <Choice label="ports that" value={side} set={setSide} of={['send', 'receive']} />
        {network.controls(catalogue, errors)}
      </div>
      {otherErrors(errors).map((text) => <p class="error" role="status">{text}</p>)}
      {json && !error && (
        <>
          <p class="verdict"><b>{words(p.algorithm)}</b> takes {duration(json.time)}. It {json.budget}. <span class="note">{json.words}.</span></p>
          <p class="buttons">
            <button onClick={() => network.setPorts(String(json.ports_needed))}>Case A: as many ports as it wants</button>
            {json.ports_needed > 1 && <button onClick={() => network.setPorts('1')}>Case B: one port</button>}
          </p>
          <figure class="card">
            <Canvas height={rows * tall + 30} label={`${json.messages} messages of ${json.ranks} ranks over ${duration(json.time)}`}
              onPoint={(x, y, click) => {
                const i = find(x, y);
                if (i < 0) return;
                tell(`round ${messages[i] + 1}: ${messages[i + 2]} → ${messages[i + 3]}, ${size(messages[i + 4])}, from ${duration(messages[i + 5])} to ${duration(messages[i + 6])}${messages[i + 7] >= 0 ? `, port ${messages[i + 7]} to port ${messages[i + 8]}` : ''}`);
                if (click) p.setRound(String(messages[i] + 1));
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
            <WallFile ends={measured} time={json.time} />
            <figcaption class="readout" role="status">{told || 'Colours are rounds; the round that the player is at stands out. Point at a bar to read it.'}</figcaption>
          </figure>
        </>
      )}
    </Section>
  );
}
