// Shows the course's tasks and judges visitors' schedules and formulas as rankine check does.
import { useEffect } from 'preact/hooks';
import type { Answer, Json } from './engine';
import { duration, size, words } from './format';
import { Choice, Computed, errorIn, Field, Section, Text, useAnswer } from './parts';
import { Passes } from './passes';
import { answersTo, asked, Mine, record, remarksOf, useBeginnings } from './results';
import { useParam } from './state';
import { Word } from './words';

/** Shows a pipeline's order beside the named orders. */
function Order({ answer }: { answer: Answer }) {
  const { json, numbers } = answer;
  if (json.named === undefined) return null;
  const rows: Json[] = [...(json.yours ? [json.yours] : []), ...json.named];
  return (
    <>
      <div class="wide" tabIndex={0} role="region" aria-label="orders compared">
        <table>
          <thead><tr>{['order', 'takes', 'idle at most', 'micro-batches kept, stage by stage'].map((head) => <th scope="col">{head}</th>)}</tr></thead>
          <tbody>{rows.map((one) => <tr><td>{one.order}</td><td>{one.time} s</td><td>{one.idle} s</td><td>{one.kept.join(' ')}</td></tr>)}</tbody>
        </table>
      </div>
      {numbers.length > 0 && <Passes numbers={numbers} stages={json.stages} end={json.end} text={(seconds) => `${seconds} s`} />}
    </>
  );
}

function Verdict({ json, text }: { json: Json; text: string }) {
  if (json.error) return <p class="error" role="status">{json.error}</p>;
  if (!json.proved) {
    const lines = text.split('\n');
    return (
      <div class="proof bad" role="status">
        <b>Wrong: {words(json.kind)}.</b> The rule: {json.rule}. Here: {json.text}.
        {[...new Set(json.lines as number[])].map((line: number) => <div><code>line {line}: {lines[line - 1]}</code></div>)}
      </div>
    );
  }
  if (json.named) return <div class="proof good" role="status"><b>Right.</b> Each stage does all of its work, and no stage waits for ever.</div>;
  return (
    <div class="proof good" role="status">
      <b>Proved.</b> {json.rounds} rounds{json.least_rounds !== undefined && `, where ${json.least_rounds} are the least with as many ports`}. The busiest rank moves {size(json.bytes)} of a vector of 1 MiB; the lower bound is {size(json.least_bytes)}.
      It takes {duration(json.time)}{json.best && `; the best of the catalogue, ${words(json.best.algorithm)}, takes ${duration(json.best.time)}`}.
    </div>
  );
}

function Schedules() {
  const beginnings = useBeginnings();
  const [name, setName] = useParam('tasks.file', '');
  const [written, setWritten] = useParam('tasks.text', '');
  const current = beginnings.find((one) => one.name === name) ?? beginnings[0];
  const text = written || (current?.text.slice(remarksOf(current.text).length) ?? '');
  const answer = useAnswer(text ? { ask: 'check', text } : undefined);
  const solved = !!answer && !answer.old && answer.json.proved && answersTo(current, text);
  useEffect(() => {
    if (solved) record(current.name, true, text);
  }, [solved, text]);
  if (!current) return null;
  return (
    <div class="card">
      <h3>Write a schedule, or a pipeline’s order</h3>
      <p class="note">The line <code>2 -&gt; 3: 2 +</code> means that rank 3 adds block 2 of rank 2 to its own block 2; without the + it copies. The task is done when the schedule is <Word of="proof">proved</Word> in the least number of rounds. In a pipeline’s order, <code>F0 B0</code> are the forward and the backward pass of micro-batch 0.</p>
      <div class="controls">
        <Choice label="task" value={current.name} set={(value) => (setWritten(''), setName(value))} of={beginnings.map((one) => [one.name, one.name] as [string, string])} />
        <button onClick={() => setWritten('')}>Undo all</button>
      </div>
      <p class="question">{asked(current.text)}</p>
      <Field label="schedule, judged while you write">
        {(id) => <textarea id={id} rows={12} spellcheck={false} value={text} onInput={(e) => setWritten(e.currentTarget.value)} />}
      </Field>
      <Computed of={[answer]}>
        {answer && <Verdict json={answer.json} text={text} />}
        {answer && <Order answer={answer} />}
      </Computed>
    </div>
  );
}

function Formulas() {
  const [name, setName] = useParam('tasks.task', 'ring_bytes');
  const [formula, setFormula] = useParam('tasks.formula', '');
  const tasks: Json[] = useAnswer({ ask: 'formula' })?.json.tasks ?? [];
  const task = tasks.find((one) => one.task === name);
  const answer = useAnswer(formula ? { ask: 'formula', task: name, formula } : undefined);
  const json = answer?.json, current = !!answer && !answer.old && json!.task === name;
  useEffect(() => {
    if (current) record(name, json!.right, formula);
  }, [current, name, formula]);
  return (
    <div class="card">
      <h3>Find a formula</h3>
      <div class="controls"><Choice label="question" value={name} set={(value) => (setFormula(''), setName(value))} of={tasks.map((one) => one.task)} /></div>
      {task && (
        <>
          <p>{task.question}</p>
          <ul class="letters">{task.letters.map((one: Json) => <li><b>{one.letter}</b> {one.meaning}, from {one.lowest} to {one.highest}</li>)}</ul>
        </>
      )}
      <Text label="your formula" value={formula} set={setFormula} placeholder="N*S" error={errorIn(answer)} />
      {json && current && (
        <p role="status" class={'proof ' + (json.right ? 'good' : 'bad')}>
          {json.right ? 'Right: it agrees with the engine at 20 random inputs.' : `Wrong at ${json.at}: the formula says ${json.said}, the engine ${json.engine}.`}
        </p>
      )}
    </div>
  );
}

export function Tasks() {
  return (
    <Section id="tasks" title="The tasks" lead={<>The tasks of the six lessons that <code>rankine lesson</code> writes. The engine’s verifier and simulator judge your answers, as <code>rankine check</code> does.</>}>
      <div class="stage"><Schedules /><Formulas /></div>
      <Mine />
    </Section>
  );
}
