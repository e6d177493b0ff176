// Shows costs: time over M and over N, simulated and by the catalogue's formulas; and guesses.
import { useState } from 'preact/hooks';
import { duration, size, words } from './format';
import { Choice, Computed, errorIn, errorOf, lanes, number, otherErrors, Section, Slider, Bytes, useAnswer } from './parts';
import { Buckets } from './buckets';
import { CollectiveChoice, linesOf, question, useNetwork, usual, type Catalogue } from './setting';
import { useParam } from './state';
import { record } from './results';
import { Word } from './words';

const sizes = Array.from({ length: 25 }, (_, i) => 2 ** (i + 6));
const counts = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 27, 32, 40, 48, 56, 64];

/** An axis of times: its ends as logarithms, a little beyond the extremes, and the rules between them. */
function axis(least: number, most: number): [number, number, number[]] {
  const spare = Math.max(0.05 * Math.log10(most / least), 0.02), low = Math.log10(least) - spare, high = Math.log10(most) + spare;
  for (const steps of [[1], [1, 2, 5], [1, 1.5, 2, 3, 5, 7]]) {
    const rules = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, i) => steps.map((step) => step * 10 ** (Math.floor(low) + i)))
      .flat().filter((time) => Math.log10(time) >= low && Math.log10(time) <= high);
    if (rules.length > 3) return [low, high, rules];
  }
  return [low, high, Array.from({ length: 4 }, (_, i) => 10 ** (low + ((high - low) * (i + 0.5)) / 4))];
}

function Chart(props: { xs: number[]; times: Float64Array; names: string[]; xText: (x: number) => string; mark?: number; crossings?: any[]; label: string }) {
  // On a narrow screen the picture is smaller, but its letters are not.
  const narrow = innerWidth < 560;
  const width = narrow ? 330 : 620, height = narrow ? 270 : 330, left = 62, bottom = 34, top = 12, right = 14;
  const { xs, times, names } = props;
  const points = xs.length;
  const known = Array.from(times).filter((t) => Number.isFinite(t) && t > 0);
  if (known.length === 0) return null;
  const [low, high, rules] = axis(Math.min(...known), Math.max(...known));
  const x = (value: number) => left + ((Math.log2(value) - Math.log2(xs[0])) / (Math.log2(xs[points - 1]) - Math.log2(xs[0]))) * (width - left - right);
  const y = (time: number) => height - bottom - ((Math.log10(time) - low) / (high - low)) * (height - bottom - top);
  const path = (first: number) => {
    let d = '', up = true;
    for (let i = 0; i < points; ++i) {
      const t = times[first + i];
      if (!Number.isFinite(t) || t <= 0) {
        up = true;
        continue;
      }
      d += `${up ? 'M' : 'L'}${x(xs[i]).toFixed(1)},${y(t).toFixed(1)}`;
      up = false;
    }
    return d;
  };
  const powers = xs.filter((value) => Number.isInteger(Math.log2(value)));
  const ticks = powers.filter((_, i) => i % Math.ceil(powers.length / (narrow ? 4 : 7)) === 0);
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={props.label}>
      {rules.map((time) => (
        <g><line class="rule" x1={left} x2={width - right} y1={y(time)} y2={y(time)} /><text class="tick end" x={left - 6} y={y(time) + 4}>{duration(time)}</text></g>
      ))}
      {ticks.map((value) => <text class="tick mid" x={x(value)} y={height - 12}>{props.xText(value)}</text>)}
      {props.mark !== undefined && props.mark >= xs[0] && props.mark <= xs[points - 1] && <line class="mark" x1={x(props.mark)} x2={x(props.mark)} y1={top} y2={height - bottom} />}
      {names.map((_, q) => (
        <g class={lanes[q]}>
          <path class="formula" d={path((names.length + q) * points)} />
          <path class="curve" d={path(q * points)} />
        </g>
      ))}
      {props.crossings?.slice(1).map((one) => <circle class="crossing" cx={x(one.bytes)} cy={y(one.time)} r="5" />)}
    </svg>
  );
}

/** Settings for guesses; the engine computes the answer. */
const guesses = [['8', '1K'], ['8', '64M'], ['16', '64K'], ['7', '4M'], ['64', '256K'], ['32', '1G'], ['48', '16K'], ['5', '512']];

export function Cost({ catalogue }: { catalogue: Catalogue }) {
  const [collective, setCollective] = useParam('cost.c', 'all_reduce');
  const [picked, setPicked] = useParam('cost.a', '');
  const [n, setN] = useParam('cost.n', '16');
  const [m, setM] = useParam('cost.m', '1M');
  const [sync, setSync] = useParam('cost.sync', 'dataflow');
  const [round, setRound] = useParam('cost.guess', '0');
  const [guess, setGuess] = useState<string>();
  const network = useNetwork('cost');
  const names = picked ? picked.split(',') : usual(catalogue, collective, 4);
  const questions = (more: any) => names.map((name) => question(catalogue, collective, name, { ...more, sync, ...network.members }));
  const overM = useAnswer({ ask: 'curve', over: 'bytes', values: sizes, questions: questions({ ranks: number(n) }) });
  const overN = useAnswer({ ask: 'curve', over: 'ranks', values: counts, questions: questions({ bytes: m }) });
  const here = useAnswer({ ask: 'simulate', question: questions({ ranks: number(n), bytes: m })[0] });
  const [guessN, guessM] = guesses[Number(round) % guesses.length];
  const truth = useAnswer({ ask: 'curve', over: 'ranks', values: [Number(guessN)], questions: questions({ bytes: guessM }) });
  const curves = [overM, overN].filter((one) => one && !one.old);
  const errors: (string | undefined)[] = [overM, overN, here].map(errorIn).concat(curves.flatMap((one) => one!.json.refused ?? []).map((e: string | null) => e ?? undefined));
  const bytes = here?.json.bytes;
  const legend = (
    <ul class="legend">
      {names.map((name, q) => (
        <li class={lanes[q]}>
          <Choice label={`curve ${q + 1}`} value={name} set={(value) => setPicked(names.map((each, j) => (j === q ? value : each)).join(','))} of={linesOf(catalogue, collective).map((line) => line.name)} />
        </li>
      ))}
    </ul>
  );
  const right = truth?.old ? undefined : truth?.json.fastest?.[0];
  const choose = (name: string) => {
    setGuess(name);
    if (typeof right === 'number') record(`guess: ${collective} among ${guessN} ranks, ${guessM}`, name === names[right], name);
  };
  return (
    <Section id="cost" title="What it costs" lead={<>A small vector costs the <Word of="alpha">latency</Word> of its messages, a large one the <Word of="beta">time of its bytes</Word>; therefore different algorithms are best at different sizes. Full lines are <Word of="simulated" />, dashed lines are the catalogue’s <Word of="formula">formulas</Word>, rounds × α + bytes × β. A circle is a <Word of="crossover" />.</>}>
      <div class="card guess">
        <p><b>Guess first.</b> Among {guessN} ranks with {size(0 + sizeOf(guessM))} each, which is fastest?</p>
        <p class="buttons">{names.map((name) => <button aria-pressed={guess === name} onClick={() => choose(name)}>{words(name)}</button>)}</p>
        {guess !== undefined && truth && !truth.json.error && typeof right === 'number' && (
          <p role="status" class={guess === names[right] ? 'good' : 'bad'}>
            {guess === names[right] ? 'Yes: ' : 'No: '}<b>{words(names[right])}</b>. {names.map((name, q) => `${words(name)} ${Number.isFinite(truth.numbers[q]) ? duration(truth.numbers[q]) : 'does not run'}`).join(', ')}.{' '}
            <button onClick={() => (setGuess(undefined), setRound(String((Number(round) + 1) % guesses.length)))}>Another</button>
          </p>
        )}
      </div>
      <div class="controls">
        <CollectiveChoice catalogue={catalogue} value={collective} set={(value) => (setPicked(''), setCollective(value))} />
        <Slider label="N, ranks" word="N" value={n} set={setN} least={2} most={64} error={errorOf('ranks', errors)} />
        <Bytes value={m} set={setM} error={errorOf('bytes', errors)} />
        <Choice label="a message waits for" word="dataflow" value={sync} set={setSync} of={[['dataflow', 'its data'], ['rounds', 'the whole round before']]} />
      </div>
      {legend}
      <div class="stage">
        <figure class="card">
          <figcaption>Time over M, among {n} ranks</figcaption>
          <Computed of={[overM]}>
          {overM && !overM.json.error && <Chart xs={sizes} times={overM.numbers} names={names} xText={size} mark={bytes} crossings={overM.json.crossovers} label={`time of ${names.join(', ')} over bytes per rank`} />}
          {overM?.json.crossovers && <p class="note">{overM.json.crossovers.map((one: any) => `from ${size(one.bytes)} on ${words(names[one.winner])} (${duration(one.time)})`).join('; ')}</p>}
          </Computed>
        </figure>
        <figure class="card">
          <figcaption>Time over N, with {bytes ? size(bytes) : m} each</figcaption>
          <Computed of={[overN]}>
          {overN && !overN.json.error && <Chart xs={counts} times={overN.numbers} names={names} xText={String} mark={Number(n)} label={`time of ${names.join(', ')} over the number of ranks`} />}
          </Computed>
          <p class="note">A gap: the algorithm has no schedule for this N.</p>
        </figure>
      </div>
      {otherErrors(errors).map((error) => <p class="error" role="status">{error}</p>)}
      {collective === 'all_reduce' && <Buckets question={{ collective, algorithm: names[0], ranks: number(n), ...network.members }} />}
      <details open={network.set || network.wrong(errors)}><summary>The network</summary><div class="controls">{network.controls(catalogue, errors)}</div></details>
    </Section>
  );
}

const sizeOf = (text: string): number => {
  const [, digits, unit] = /^(\d+)([KMG]?)$/.exec(text)!;
  return Number(digits) * 1024 ** ['', 'K', 'M', 'G'].indexOf(unit);
};
