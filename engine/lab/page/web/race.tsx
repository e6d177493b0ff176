// Races three algorithms of a collective side by side, with the engine's times.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Answer } from './engine';
import { Word } from './words';
import { duration, rate, size, words } from './format';
import { calm, Choice, colour, Computed, errorIn, lanes, otherErrors, Section, sizeText, useAnswer, useAnswers } from './parts';
import { circle } from './layout';
import { CollectiveChoice, linesOf, question, useNetwork, usual, useSizes, type Catalogue } from './setting';
import { useParam } from './state';

const columns = 11; // per message: round, transfer, from, to, bytes, start, end, ...
const seconds = 7; // on the screen, for the slowest algorithm

/** Draws ranks in a circle and the messages in flight at this time. */
function drawLane(g: CanvasRenderingContext2D, width: number, height: number, answer: Answer, time: number, paint: string) {
  const { ranks } = answer.json;
  const messages = answer.numbers;
  const side = Math.min(width, height);
  const place = circle(ranks).map(([x, y]) => [(width - side) / 2 + x * side, (height - side) / 2 + y * side]);
  const radius = Math.max(2.5, Math.min(13, 0.075 * side, (side * 1.1) / ranks));
  const got = new Float64Array(ranks), all = new Float64Array(ranks);
  const line = colour('line'), ink = colour('ink');
  g.lineCap = 'round';
  for (let i = 0; i < messages.length; i += columns) {
    const from = messages[i + 2], to = messages[i + 3], start = messages[i + 5], end = messages[i + 6];
    all[to] += messages[i + 4] || 1;
    if (time >= end) got[to] += messages[i + 4] || 1;
    if (time < start || time >= end) continue;
    const [ax, ay] = place[from], [bx, by] = place[to];
    const part = (time - start) / (end - start), tail = Math.max(0, part - 0.25);
    g.strokeStyle = line;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(ax, ay);
    g.lineTo(bx, by);
    g.stroke();
    const x = ax + (bx - ax) * part, y = ay + (by - ay) * part;
    g.strokeStyle = paint;
    g.globalAlpha = 0.45;
    g.lineWidth = radius * 0.5;
    g.beginPath();
    g.moveTo(ax + (bx - ax) * tail, ay + (by - ay) * tail);
    g.lineTo(x, y);
    g.stroke();
    g.globalAlpha = 1;
    g.fillStyle = paint;
    g.beginPath();
    g.arc(x, y, Math.max(2, radius * 0.4), 0, 7);
    g.fill();
  }
  g.font = `600 ${Math.round(radius * 0.95)}px system-ui`;
  g.textAlign = 'center';
  g.textBaseline = 'middle';
  const paper = colour('card');
  for (let r = 0; r < ranks; ++r) {
    const [x, y] = place[r], part = all[r] > 0 ? got[r] / all[r] : 1;
    g.fillStyle = part >= 1 ? paint : paper;
    g.strokeStyle = line;
    g.lineWidth = Math.max(1.5, radius * 0.22);
    g.beginPath();
    g.arc(x, y, radius, 0, 7);
    g.fill();
    g.stroke();
    g.strokeStyle = paint;
    g.beginPath();
    g.arc(x, y, radius, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * part);
    g.stroke();
    if (radius < 7) continue;
    g.fillStyle = part >= 1 ? paper : ink;
    g.fillText(String(r), x, y + 0.5);
  }
}

function fit(canvas: HTMLCanvasElement): [CanvasRenderingContext2D, number, number] {
  const width = canvas.clientWidth, height = canvas.clientHeight, dense = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
    canvas.width = Math.round(width * dense);
    canvas.height = Math.round(height * dense);
  }
  const g = canvas.getContext('2d')!;
  g.setTransform(dense, 0, 0, dense, 0, 0);
  g.clearRect(0, 0, width, height);
  return [g, width, height];
}

/** Links a word to its meaning, only in the first lane. */
const mean = (lane: number, word: string, text: string) => (lane === 0 ? <Word of={word}>{text}</Word> : text);

/** The fastest algorithm at each size, as a strip of colours. */
function Winners(props: { answer: Answer | undefined; names: string[]; bytes: number; setM: (m: string) => void }) {
  const json = props.answer?.json;
  if (!json?.crossovers?.length) return null;
  const values: number[] = json.values;
  const least = Math.log2(values[0]), most = Math.log2(values[values.length - 1]);
  const at = (bytes: number) => Math.max(0, Math.min(100, (100 * (Math.log2(bytes) - least)) / (most - least)));
  const parts = json.crossovers.map((one: any, i: number) => ({
    ...one, left: at(one.bytes), right: i + 1 < json.crossovers.length ? at(json.crossovers[i + 1].bytes) : 100,
  }));
  return (
    <div class="winners">
      <h3>Who wins at which size</h3>
      <div class="strip">
        {parts.map((part: any) => (
          <span class={lanes[part.winner]} style={{ left: part.left + '%', width: part.right - part.left + '%' }}>
            {part.right - part.left > 12 && words(props.names[part.winner])}
          </span>
        ))}
        {props.bytes > 0 && <i class="here" style={{ left: at(props.bytes) + '%' }} title="M" />}
      </div>
      <div class="ends" aria-hidden="true"><span>{size(values[0])}</span><span>{size(values[values.length - 1])}</span></div>
      <p class="note">
        {parts.map((part: any, i: number) => (
          <>
            {i === 0 ? `From ${size(part.bytes)} on ` : '; '}
            {i > 0 && <button class="plain" onClick={() => props.setM(String(Math.round(part.bytes)))}>from {size(part.bytes)} on</button>} <b>{words(props.names[part.winner])}</b>
          </>
        ))}
        .{parts.length > 1 && <> Each change of colour is a <Word of="crossover" />: there two algorithms take the same time.</>}
      </p>
    </div>
  );
}

export function Race({ catalogue }: { catalogue: Catalogue }) {
  const [collective, setCollective] = useParam('race.c', 'all_reduce');
  const [picked, setPicked] = useParam('race.a', '');
  const sizes = useSizes('race', '8', '1M');
  const network = useNetwork('race');
  const names = picked ? picked.split(',') : usual(catalogue, collective, 3);
  const more = { ...sizes.members, ...network.members };
  const requests = names.map((name) => question(catalogue, collective, name, more));
  const answers = useAnswers(requests.map((one) => ({ ask: 'messages', question: one })));
  const costs = useAnswers(requests.map((one) => ({ ask: 'simulate', question: one })));
  const values = useMemo(() => Array.from({ length: 25 }, (_, i) => 2 ** (i + 6)), []);
  const { ranks, bytes: _, ...rest } = more;
  const curve = useAnswer({
    ask: 'curve', over: 'bytes', values,
    questions: names.map((name) => ({ ...question(catalogue, collective, name, { ranks, ...rest }), })),
  });
  const errors = [...answers, ...costs].map(errorIn);
  const ready = answers.length === names.length;
  const slowest = Math.max(0, ...answers.map((answer) => answer.json.time ?? 0));
  const best = costs.filter((one) => !one.json.error).sort((a, b) => a.json.time - b.json.time)[0]?.json;

  const canvases = useRef<(HTMLCanvasElement | null)[]>([]);
  const clocks = useRef<(HTMLElement | null)[]>([]);
  const scrub = useRef<HTMLInputElement>(null);
  const time = useRef(calm ? 1 : 0); // as a part of the slowest time
  const [running, run] = useState(!calm);
  const [speed, setSpeed] = useState('1');
  const frames = useRef(0);

  const paint = () => {
    ++frames.current;
    answers.forEach((answer, i) => {
      const canvas = canvases.current[i];
      if (!canvas || answer.json.error) return;
      const now = time.current * slowest, done = now >= answer.json.time;
      drawLane(...fit(canvas), answer, now, colour(lanes[i]));
      const clock = clocks.current[i];
      if (clock) {
        // Changes the existing text node, so that a frame makes no new nodes.
        clock.firstChild!.nodeValue = done ? `done at ${duration(answer.json.time)}` : duration(now);
        clock.classList.toggle('done', done);
      }
    });
    if (scrub.current && document.activeElement !== scrub.current) scrub.current.value = String(Math.round(time.current * 1000));
    (window as any).raceFrames = frames.current;
  };
  useEffect(() => {
    if (!ready) return;
    if (!running) {
      paint();
      return;
    }
    let before = performance.now(), handle = 0;
    const step = (now: number) => {
      time.current = Math.min(1, time.current + ((now - before) / 1000 / seconds) * Number(speed));
      before = now;
      paint();
      if (time.current >= 1) run(false);
      else handle = requestAnimationFrame(step);
    };
    handle = requestAnimationFrame(step);
    return () => cancelAnimationFrame(handle);
  });
  useEffect(() => {
    const observer = new ResizeObserver(paint);
    canvases.current.forEach((canvas) => canvas && observer.observe(canvas));
    return () => observer.disconnect();
  });
  const start = (from: number) => {
    time.current = from;
    run(true);
  };

  return (
    <Section id="race" title="The race" lead={<>Three algorithms do the same work on the same <Word of="network" />. Each dot is a <Word of="message" />; a <Word of="rank" /> fills up while its messages arrive. The times are <Word of="simulated" />.</>}>
      <div class="controls">
        <CollectiveChoice catalogue={catalogue} value={collective} set={(value) => (setPicked(''), setCollective(value))} />
        {sizes.controls(errors)}
      </div>
      <div class="transport">
        <button class="main" onClick={() => (running ? run(false) : start(time.current >= 1 ? 0 : time.current))}>{running ? 'Pause' : 'Run'}</button>
        <button onClick={() => start(0)}>Again</button>
        <input type="range" min={0} max={1000} ref={scrub} aria-label="time in the race" onInput={(e) => {
          run(false);
          time.current = Number(e.currentTarget.value) / 1000;
          paint();
        }} />
        <Choice label="speed" value={speed} set={setSpeed} of={[['0.25', '¼'], ['0.5', '½'], ['1', '1'], ['2', '2'], ['4', '4']]} />
      </div>
      <div class="lanes racers">
        {names.map((name, i) => {
          const answer = answers[i], json = costs[i]?.json;
          return (
            <article class={'card lane ' + lanes[i]} data-algorithm={name}>
              <Choice label={`lane ${i + 1}`} value={name} set={(value) => setPicked(names.map((each, j) => (j === i ? value : each)).join(','))}
                of={linesOf(catalogue, collective).map((line) => line.name)} />
              <Computed of={[answer, costs[i]]}>
                {answer?.json.error ? (
                  <p class="error" role="status">{answer.json.error}</p>
                ) : (
                  <>
                    <canvas class="square" ref={(element) => void (canvases.current[i] = element)} role="img"
                      aria-label={`${words(name)} among ${answer?.json.ranks ?? ''} ranks: ${json && !json.error ? `${duration(json.time)}, ${json.messages} messages in ${json.rounds} rounds` : ''}`} />
                    <p class="clock" ref={(element) => void (clocks.current[i] = element)}>0</p>
                    {json && !json.error && (
                      <dl class="facts">
                        <div class={json.algorithm === best?.algorithm ? 'best' : ''}><dt>time</dt><dd data-fact="time" data-value={json.time}>{duration(json.time)}</dd></div>
                        <div><dt>{mean(i, 'alpha', 'made of')}</dt><dd data-fact="alphas" data-value={json.alphas}>{json.alphas_text} α + {Number(json.betas.toPrecision(4))} Mβ</dd></div>
                        <div><dt>{mean(i, 'round', 'rounds')}</dt><dd data-fact="rounds" data-value={json.rounds}>{json.rounds}</dd></div>
                        <div><dt>{mean(i, 'message', 'messages')}</dt><dd data-fact="messages" data-value={json.messages}>{json.messages}</dd></div>
                        <div><dt>busiest rank sends</dt><dd data-fact="sent_max" data-value={json.sent_max}>{size(json.sent_max)}</dd></div>
                        <div><dt>{mean(i, 'port', 'ports wanted')}</dt><dd data-fact="ports_needed" data-value={json.ports_needed}>{json.ports_needed}{json.serialises ? ', more than there are' : ''}</dd></div>
                        <div><dt>{mean(i, 'busbw', 'busbw')}</dt><dd data-fact="busbw" data-value={json.busbw}>{rate(json.busbw)}</dd></div>
                        {json.segments > 1 && <div><dt><Word of="segment">segments</Word></dt><dd data-fact="segments" data-value={json.segments}>{json.segments}</dd></div>}
                      </dl>
                    )}
                  </>
                )}
              </Computed>
            </article>
          );
        })}
      </div>
      <Computed of={costs}>
        {best && (
          <p class="verdict">
            <b>{words(best.algorithm)}</b> wins with {duration(best.time)}: {best.alphas_text} times <Word of="alpha">α</Word>, and {Number(best.betas.toPrecision(4))} times M<Word of="beta">β</Word>.{' '}
            {costs.filter((one) => !one.json.error && one.json !== best).map((one, i) => (
              <>{i > 0 ? '; ' : ''}{words(one.json.algorithm)}: {one.json.alphas_text} α + {Number(one.json.betas.toPrecision(4))} Mβ, {Number((one.json.time / best.time).toPrecision(3))} times as long</>
            ))}. <span class="note">{best.words}.</span>
          </p>
        )}
      </Computed>
      <Computed of={[curve]}>
        <Winners answer={curve} names={names} bytes={best?.bytes ?? 0} setM={sizes.setM} />
      </Computed>
      <details open={network.set || network.wrong(errors)}>
        <summary>The network</summary>
        <div class="controls">{network.controls(catalogue, errors)}</div>
        <p class="note">{catalogue.networks.find((one) => one.name === network.network)?.source}. Smallest shown: {sizeText(6)}.</p>
      </details>
      {otherErrors(errors).filter((error) => !answers.some((one) => one.json.error === error)).map((error) => <p class="error" role="status">{error}</p>)}
    </Section>
  );
}
