// The course's tasks, judged as rankine check judges them: schedules that visitors write, and formulas.
import { useEffect, useState } from 'preact/hooks';
import { bytesOf, type Json } from './engine';
import { duration, size, words } from './format';
import { Choice, Field, Section, Text, useAnswer } from './parts';
import { useParam } from './state';

interface Beginning {
  name: string;
  text: string;
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
  const text = written || current?.text || '';
  const answer = useAnswer(text ? { ask: 'check', text } : undefined);
  if (!current) return null;
  return (
    <div class="card">
      <h3>Write a schedule</h3>
      <p class="note">A line <code>2 -&gt; 3: 2 +</code> has rank 3 add block 2 of rank 2 to its own; without the + it is a copy. Done is what is proved in as few rounds as can be.</p>
      <div class="controls">
        <Choice label="task" value={current.name} set={(value) => (setWritten(''), setName(value))} of={beginnings.map((one) => [one.name, one.name] as [string, string])} />
        <button onClick={() => setWritten('')}>As it was</button>
      </div>
      <Field label="schedule, judged while you write">
        {(id) => <textarea id={id} rows={12} spellcheck={false} value={text} onInput={(e) => setWritten(e.currentTarget.value)} />}
      </Field>
      {answer && <Verdict json={answer.json} text={text} />}
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
