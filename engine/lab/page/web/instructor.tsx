// Shows the instructor a plan of the lessons and the results of a class.
import { useState } from 'preact/hooks';
import { Section } from './parts';
import { goTo, set } from './state';
import { lessons } from './lessons';
import { isGuess, judged, read, saveFile, useBeginnings, type Results } from './results';

interface Learner extends Results {
  file: string;
  right: Record<string, boolean>;
}

const most = 1 << 20;

function Class() {
  const beginnings = useBeginnings();
  const [learners, setLearners] = useState<Learner[]>([]);
  const [wrong, tell] = useState<string[]>([]);
  const tasks = lessons.flatMap((lesson, i) => [...beginnings.map((one) => one.name).filter((name) => name.startsWith(`${i + 1}-`)), ...lesson.formulas]);
  const load = async (files: File[]) => {
    const found: Learner[] = [], refused: string[] = [];
    for (const file of files) {
      const results = file.size <= most ? read(await file.text()) : undefined;
      if (!results) {
        refused.push(`${file.name} is no file of results; “Save for the instructor”, below the tasks, writes them (${most >> 20} MiB at most).`);
        continue;
      }
      // A file's claims are not trusted: schedules and formulas are judged here.
      const right: Record<string, boolean> = {};
      for (const task of tasks) if (results.results[task]) right[task] = await judged(task, results.results[task].answer, beginnings);
      found.push({ ...results, file: file.name, right });
    }
    tell(refused);
    setLearners((before) => [...before.filter((one) => !found.some((other) => other.file === one.file)), ...found].sort((a, b) => a.name.localeCompare(b.name)));
  };
  const guesses = (one: Learner): string => {
    const all = Object.entries(one.results).filter(([task]) => isGuess(task));
    return `${all.filter(([, { right }]) => right).length} of ${all.length}`;
  };
  const cell = (one: Learner, task: string): string => (!one.results[task] ? '' : one.right[task] ? '✓' : '✗') + (one.results[task]?.tries > 1 ? ` ${one.results[task].tries}` : '');
  const solved = (one: Learner): number => tasks.filter((task) => one.right[task]).length;
  const table = [
    ['learner', ...tasks, 'solved', 'guesses right'],
    ...learners.map((one) => [one.name || one.file, ...tasks.map((task) => cell(one, task)), `${solved(one)} of ${tasks.length}`, guesses(one)]),
  ];
  // A spreadsheet reads a cell that begins with one of these characters as a formula.
  const csv = () => table.map((row) => row.map((text) => `"${text.replace(/^[=+\-@]/, "'$&").replaceAll('"', '""')}"`).join(',')).join('\r\n') + '\r\n';
  return (
    <div class="card">
      <p>Learners save their results below the tasks and hand in the files. Choose all files here; they stay on this machine.</p>
      <p><label>Files of results <input type="file" multiple accept=".json,application/json" disabled={beginnings.length === 0} onChange={(e) => {
        const files = [...(e.currentTarget.files ?? [])];
        e.currentTarget.value = ''; // so that a file can be chosen again
        load(files);
      }} /></label></p>
      {wrong.map((text) => <p class="error" role="status">{text}</p>)}
      {learners.length > 0 && (
        <>
          <div class="wide" tabIndex={0} role="region" aria-label="results of the class">
            <table class="class">
              <thead><tr>{table[0].map((text) => <th scope="col"><span>{text}</span></th>)}</tr></thead>
              <tbody>{table.slice(1).map((row) => <tr>{row.map((text, i) => (i === 0 ? <th scope="row">{text}</th> : <td class={text[0] === '✓' ? 'good' : text[0] === '✗' ? 'bad' : ''}>{text}</td>))}</tr>)}</tbody>
              <tfoot><tr><th scope="row">solved by</th>{tasks.map((task) => <td>{learners.filter((one) => one.right[task]).length}</td>)}<td /><td /></tr></tfoot>
            </table>
          </div>
          <p class="note">✓ right, ✗ tried, and how many different answers it took, where it was more than one. This page has judged schedules and formulas again; guesses are as the file says.</p>
          <p class="buttons"><button onClick={() => saveFile('rankine-class.csv', csv(), 'text/csv')}>Save as CSV</button><button onClick={() => setLearners([])}>Clear</button></p>
        </>
      )}
    </div>
  );
}

export function Instructor() {
  return (
    <>
      <Section id="instructor" title="For the instructor" lead={<>Six lessons, {lessons.reduce((sum, one) => sum + one.minutes, 0)} minutes in all. The minutes are a plan: a third for your explanation, a third for the questions, a third for the tasks. <code>rankine lesson -o course</code> writes the text of the lessons, with all answers; this page draws and judges.</>}>
        {lessons.map((lesson, i) => (
          <article class="card lesson">
            <h3>{i + 1}. {lesson.title} <span class="note">{lesson.minutes} minutes</span></h3>
            <p><b>Show.</b> {lesson.show.map(([text, section, settings], k) => <>{k > 0 && ' · '}<a href={`#${section}?${new URLSearchParams(settings)}`} onClick={(e) => (e.preventDefault(), set(settings), goTo(section))}>{text}</a></>)}</p>
            <p><b>Ask.</b></p>
            <ul>{lesson.ask.map(([question, answer]) => <li>{question} <span class="note">{answer}</span></li>)}</ul>
          </article>
        ))}
      </Section>
      <Section id="class" title="Results of a class" lead="Which tasks each learner has solved.">
        <Class />
      </Section>
    </>
  );
}
