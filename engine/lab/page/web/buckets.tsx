// Shows bucket sizes: the best number of calls for the sum of the gradients.
import { duration, size, words } from './format';
import type { Json } from './engine';
import { Computed, errorIn, errorOf, lanes, number, Slider, Text, useAnswer } from './parts';
import { useParam } from './state';
import { Word } from './words';

/** `question`: an all-reduce without its bytes. */
export function Buckets({ question }: { question: Json }) {
  const [tensors, setTensors] = useParam('cost.tensors', '64');
  const [tensor, setTensor] = useParam('cost.tensor', '4M');
  const [backward, setBackward] = useParam('cost.backward', '20ms');
  const answer = useAnswer({ ask: 'buckets', question: { ...question, bytes: tensor }, tensors: number(tensors), ...(backward && { backward }) });
  const json = answer?.json, errors = [errorIn(answer)];
  const rows: Json[] = json?.rows ?? [];
  const most = Math.max(...rows.map((row) => row.seconds), 1e-30);
  return (
    <div class="card buckets">
      <h3>How large should a <Word of="bucket" /> be?</h3>
      <p class="note">Gradients become ready tensor by tensor during the backward pass. Small buckets cost many messages. Large buckets cost few, but the last one starts when the pass has ended, and nothing hides it.</p>
      <div class="controls">
        <Slider label="tensors" value={tensors} set={setTensors} least={1} most={256} error={errorOf('tensors', errors)} />
        <Text label="bytes of each" value={tensor} set={setTensor} error={errorOf('bytes', errors)} />
        <Text label="backward pass" value={backward} set={setBackward} placeholder="none" error={errorOf('backward', errors)} />
      </div>
      {json?.error && !['tensors', 'bytes', 'backward'].some((member) => errorOf(member, errors)) && <p class="error" role="status">{json.error}</p>}
      <Computed of={[answer]}>{json && !json.error && (
        <>
          <ul class="rows">
            {rows.map((row, i) => (
              <li class={i === json.best ? 'best' : ''}>
                <span>{size(row.bytes)}{i === json.best && ', the best'}</span>
                <span class="parts" role="img" aria-label={`${row.calls} calls: ${duration(row.exposed)} exposed of ${duration(row.seconds)}`}>
                  <span class={lanes[1]} style={{ width: `${(100 * row.exposed) / most}%` }} />
                  <span class={lanes[0]} style={{ width: `${(100 * (row.seconds - row.exposed)) / most}%` }} />
                </span>
                <b data-value={row.exposed}>{duration(row.exposed)}</b>
              </li>
            ))}
          </ul>
          <ul class="legend"><li class={lanes[1]}><Word of="exposed">exposed</Word>, the figure at the right</li><li class={lanes[0]}>hidden behind the backward pass</li></ul>
          <p class="note">{words(question.algorithm)}, {tensors} tensors of {tensor}.{json.calls !== undefined && ` If communication takes longer than the backward pass, the exposed time is shortest with about ${Math.max(1, Math.round(json.calls))} ${Math.round(json.calls) <= 1 ? 'bucket' : 'buckets'} of equal size.`}</p>
        </>
      )}</Computed>
    </div>
  );
}
