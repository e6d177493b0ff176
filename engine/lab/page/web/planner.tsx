// Shows the planner: the engine's plan of a training step on ranks; its pipeline over time, hidden and exposed communication.
import { duration, size } from './format';
import { Choice, Computed, errorIn, errorOf, number, Section, Slider, useAnswer } from './parts';
import { Passes } from './passes';
import { useParam } from './state';
import { Word } from './words';

const axes: [string, string, number][] = [
  ['tp', 'tp, ranks that divide each matrix', 16], ['sp', 'sp, ranks that divide each sequence', 16], ['ep', 'ep, ranks that divide the experts', 16],
  ['dp', 'dp, ranks that divide the batch', 64], ['pp', 'pp, pipeline stages', 16],
];
const memory: [string, string, string][] = [
  ['layer_state', 'layers: parameters, gradients, optimizer', 'lane0'], ['embedding_state', 'embedding or output matrix, likewise', 'lane2'], ['activations', 'activations', 'lane1'],
];
const first: Record<string, string> = { tp: '2', dp: '2', pp: '4', micro_batches: '8' };

/** Parts of a whole as widths, with a legend. */
function Bar(props: { label: string; parts: [string, number, string][]; whole: number; text: (value: number) => string }) {
  return (
    <figure class="card">
      <figcaption>{props.label}</figcaption>
      <span class="parts" role="img" aria-label={props.parts.map(([name, value]) => `${name} ${props.text(value)}`).join(', ')}>
        {props.parts.map(([, value, lane]) => <span class={lane} style={{ width: `${(100 * value) / Math.max(props.whole, 1e-30)}%` }} />)}
      </span>
      <ul class="legend">{props.parts.map(([name, value, lane]) => <li class={lane}>{name}: <b data-value={value}>{props.text(value)}</b></li>)}</ul>
    </figure>
  );
}

export function Planner() {
  const [model, setModel] = useParam('planner.model', 'gpt2');
  const [machine, setMachine] = useParam('planner.machine', 'a100');
  const [order, setOrder] = useParam('planner.order', '1f1b');
  const [recompute, setRecompute] = useParam('planner.recompute', 'none');
  const [zero, setZero] = useParam('planner.zero', '0');
  const [skew, setSkew] = useParam('planner.skew', '100');
  const sizes = [...axes, ['micro_batches', 'micro-batches of a step', 64] as [string, string, number]].map(([key, label, most]) => {
    const [value, set] = useParam('planner.' + key, first[key] ?? '1');
    return { key, label, most, value, set };
  });
  const answer = useAnswer({ ask: 'plan', model, machine, order, recompute, zero: number(zero), router_skew: number(skew) / 100, ...Object.fromEntries(sizes.map((one) => [one.key, number(one.value)])) });
  // The names to choose from; a separate request, because an error has none.
  const names = useAnswer({ ask: 'plan' });
  const json = answer?.json, error = json?.error as string | undefined, errors = [errorIn(answer)];
  const numbers = answer?.numbers ?? new Float64Array();
  const stages = json && !error ? json.axes.pp : 0;
  const beside = ['router_skew', ...sizes.map((one) => one.key)].some((key) => errorOf(key, errors));
  return (
    <Section id="planner" title="The planner" lead={<>The time of a training step, and what it is spent on. Divide a model among ranks along <Word of="axes">five axes</Word>. Each collective below is <Word of="simulated" /> on the machine’s network, and so is each pass of the pipeline. Communication that runs while the rank computes (<Word of="exposed">hidden</Word>) adds no time.</>}>
      <div class="controls">
        <Choice label="model" value={model} set={setModel} of={(names?.json.models ?? [{ name: model }]).map((one: any) => [one.name, one.name])} />
        <Choice label="machine" value={machine} set={setMachine} of={(names?.json.machines ?? [{ name: machine }]).map((one: any) => [one.name, one.name])} />
        {sizes.map((one) => <Slider label={one.label} word={one.key === 'micro_batches' ? 'micro_batch' : 'axes'} value={one.value} set={one.set} least={1} most={one.most} error={errorOf(one.key, errors)} />)}
        <Slider label="tokens of the busiest rank along ep, % of the mean" word="router_skew" value={skew} set={setSkew} least={100} most={100 * Math.max(1, json?.axes?.ep ?? 1)} error={errorOf('router_skew', errors)} />
        <Choice label="order of a stage’s passes" word="orders" value={order} set={setOrder} of={[['gpipe', 'GPipe'], ['1f1b', '1F1B'], ['zb1p', 'ZB1P'], ['zb2p', 'ZB2P'], ['zbv', 'ZB-V']]} />
        <Choice label="computed again in the backward pass" word="recompute" value={recompute} set={setRecompute} of={[['none', 'nothing'], ['selective', 'attention'], ['full', 'all']]} />
        <Choice label="divided along dp (ZeRO)" word="ZeRO" value={zero} set={setZero} of={[['0', 'nothing'], ['1', 'the optimizer'], ['2', 'gradients also'], ['3', 'parameters also']]} />
      </div>
      {errors[0] && !beside && <p class="error" role="status">{error}</p>}
      <Computed of={[answer]}>{json && !error && (
        <>
          <p class="verdict"><b>{json.title}</b>: a step takes {duration(json.seconds)}; its <Word of="utilisation" /> is {(100 * json.utilisation).toFixed(1)} % of the ranks’ peak{json.memory.fits ? '' : '; it does not fit into a rank’s memory'}.</p>
          <div class="stage three">
            <Bar label={`A step of stage ${json.stage}`} whole={json.seconds} text={duration}
              parts={[['computing', json.computing, 'lane0'], ['communicating, exposed', json.exposed, 'lane1'], ['waiting for other stages (the bubble)', json.bubble, 'lane3']]} />
            <Bar label={`Communicating, ${duration(json.communicating)} in all`} whole={json.communicating} text={duration}
              parts={[['hidden behind computing', json.hidden, 'lane0'], ['exposed', json.exposed, 'lane1']]} />
            <figure class="card">
              <figcaption>Memory of a rank of each stage, of {size(json.memory.of)}</figcaption>
              <ul class="rows">
                {json.stages.map((stage: any, s: number) => (
                  <li>
                    <span>stage {s}</span>
                    <span class="parts" role="img" aria-label={memory.map(([key, name]) => `${name} ${size(stage[key])}`).join(', ')}>
                      {memory.map(([key, , lane]) => <span class={lane} style={{ width: `${(100 * stage[key]) / Math.max(json.memory.of, ...json.stages.map((one: any) => one.all))}%` }} />)}
                    </span>
                    <b data-memory={stage.all}>{size(stage.all)}</b>
                  </li>
                ))}
              </ul>
              <ul class="legend">{memory.map(([, name, lane]) => <li class={lane}>{name}</li>)}</ul>
              <p class="note">Of the first stage, by formula: {size(json.memory.all)}, {Number(json.memory.micro_batches_kept.toPrecision(3))} micro-batches kept.</p>
            </figure>
          </div>
          <figure class="card">
            <figcaption>Every stage’s passes over time</figcaption>
            <Passes numbers={numbers} stages={stages} end={json.end} text={duration} />
          </figure>
          <div class="wide" tabIndex={0} role="region" aria-label="collectives of the step">
            <table>
              <thead><tr>{['along', 'collective', 'for', 'algorithm', 'M', 'times', 'all', 'hidden', 'exposed'].map((head) => <th scope="col">{head}</th>)}</tr></thead>
              <tbody>{json.collectives.map((one: any) => (
                <tr><td>{one.along} ({one.ranks.length})</td><td>{one.collective}</td><td>{one.for}</td><td>{one.algorithm}</td><td>{size(one.bytes)}</td><td>{Math.round(one.times)}</td><td>{duration(one.seconds)}</td><td>{duration(one.hidden)}</td><td>{duration(one.exposed)}</td></tr>
              ))}</tbody>
            </table>
          </div>
        </>
      )}</Computed>
    </Section>
  );
}
