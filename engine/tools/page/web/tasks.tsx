// The course's tasks, judged as rankine check judges them: schedules that visitors write, and formulas.
import { useEffect, useState } from 'preact/hooks';
import { bytesOf, type Answer, type Json } from './engine';
import { duration, size, words } from './format';
import { Choice, Field, Section, Text, useAnswer } from './parts';
import { Passes } from './passes';
import { useParam } from './state';

interface Beginning {
  name: string;
  text: string;
}

/** A pipeline's order beside those that have names. */
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
  if (json.named) return <div class="proof good" role="status"><b>Right.</b> Every stage does its work, and nobody waits for ever.</div>;
  return (
    <div class="proof good" role="status">
      <b>Proved.</b> {json.rounds} rounds{json.least_rounds !== undefined && `, where ${json.least_rounds} are the least with as many ports`}; the busiest rank moves {size(json.bytes)} of 1 MiB, where some rank has to
      move {size(json.least_bytes)}; {duration(json.time)}{json.best && `, where the catalogue’s best, ${words(json.best.algorithm)}, takes ${duration(json.best.time)}`}.
    </div>
  );
}

function Schedules() {
  const [beginnings, setBeginnings] = useState<Beginning[]>([]);
  const [name, setName] = useParam('tasks.file', '');
  const [written, setWritten] = useParam('tasks.text', '');
  useEffect(() => void bytesOf('tasks-files').then((bytes) => setBeginnings(JSON.parse(new TextDecoder().decode(bytes)))), []);
  const current = beginnings.find((one) => one.name === name) ?? beginnings[0];
  // What is asked stands in the remarks that the file begins with.
  const remarks = /^(#.*\n)*/.exec(current?.text ?? '')![0];
  const text = written || (current?.text.slice(remarks.length) ?? '');
  const answer = useAnswer(text ? { ask: 'check', text } : undefined);
  if (!current) return null;
  return (
    <div class="card">
      <h3>Write a schedule, or a pipeline’s order</h3>
      <p class="note">A line <code>2 -&gt; 3: 2 +</code> has rank 3 add block 2 of rank 2 to its own; without the + it is a copy. Done is what is proved in as few rounds as can be. In a pipeline’s order, <code>F0 B0</code> are the forward and the backward pass of micro-batch 0.</p>
      <div class="controls">
        <Choice label="task" value={current.name} set={(value) => (setWritten(''), setName(value))} of={beginnings.map((one) => [one.name, one.name] as [string, string])} />
        <button onClick={() => setWritten('')}>As it was</button>
      </div>
      <p class="question">{remarks.replace(/^# ?/gm, '').replace(/\n/g, ' ')}</p>
      <Field label="schedule, judged while you write">
        {(id) => <textarea id={id} rows={12} spellcheck={false} value={text} onInput={(e) => setWritten(e.currentTarget.value)} />}
      </Field>
      {answer && <Verdict json={answer.json} text={text} />}
      {answer && <Order answer={answer} />}
    </div>
  );
}

function Formulas() {
  const [name, setName] = useParam('tasks.task', 'ring_bytes');
  const [formula, setFormula] = useParam('tasks.formula', '');
  const tasks: Json[] = useAnswer({ ask: 'formula' })?.json.tasks ?? [];
  const task = tasks.find((one) => one.task === name);
  const answer = useAnswer(formula ? { ask: 'formula', task: name, formula } : undefined);
  const json = formula ? answer?.json : undefined;
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
      <Text label="your formula" value={formula} set={setFormula} placeholder="N*S" error={json?.error} />
      {json && !json.error && json.task === name && (
        <p role="status" class={'proof ' + (json.right ? 'good' : 'bad')}>
          {json.right ? 'Right: what the engine says, at 20 inputs drawn by chance.' : `Wrong at ${json.at}: the formula says ${json.said}, the engine ${json.engine}.`}
        </p>
      )}
    </div>
  );
}

export function Tasks() {
  return (
    <Section id="tasks" title="The tasks" lead={<>Of the six lessons that <code>rankine lesson</code> writes. What judges your answer is the verifier and the simulator; <code>rankine check</code> says the same.</>}>
      <div class="stage"><Schedules /><Formulas /></div>
    </Section>
  );
}
