// Keeps a learner's results in this browser and saves them as a file; the instructor's page judges them again.
import { useEffect, useState } from 'preact/hooks';
import { ask, bytesOf, type Json } from './engine';

export interface Result {
  right: boolean;
  tries: number; // different answers until the first right one
  answer: string; // a schedule, a pipeline's order, a formula, or a guess
}
/** The file that a learner hands in. Names of guesses begin with "guess: " or "break: ". */
export interface Results {
  rankine: 'results';
  name: string;
  results: Record<string, Result>;
}
export interface Beginning {
  name: string;
  text: string;
}

const key = 'rankine.results', fresh = (): Results => ({ rankine: 'results', name: '', results: {} });
const listeners = new Set<() => void>();
/** Reads a file of results; undefined if `text` is not such a file. */
export function read(text: string): Results | undefined {
  try {
    const found = JSON.parse(text);
    const fits = found?.rankine === 'results' && typeof found.name === 'string' && found.results !== null && typeof found.results === 'object' &&
      Object.values<Json>(found.results).every((one) => typeof one?.right === 'boolean' && Number.isInteger(one.tries) && typeof one.answer === 'string');
    return fits ? found : undefined;
  } catch {
    return undefined;
  }
}
// A browser may refuse storage, for example for pages from files; then results last until the page is closed.
let kept = fresh();
try {
  kept = read(localStorage.getItem(key) ?? '') ?? kept;
} catch { /* as above */ }
function keep(next: Results) {
  kept = next;
  try {
    localStorage.setItem(key, JSON.stringify(kept));
  } catch { /* as above */ }
  listeners.forEach((listener) => listener());
}

export const isGuess = (task: string): boolean => /^(guess|break): /.test(task);

/** For a guess the first answer counts. For a task a wrong answer never replaces a right one. */
export function record(task: string, right: boolean, answer: string) {
  const before = kept.results[task];
  if (before && (isGuess(task) || before.answer === answer || (before.right && !right))) return;
  const tries = before?.right ? before.tries : (before?.tries ?? 0) + 1;
  keep({ ...kept, results: { ...kept.results, [task]: { right, tries, answer } } });
}

export function useBeginnings(): Beginning[] {
  const [found, set] = useState<Beginning[]>([]);
  useEffect(() => void bytesOf('tasks-files').then((bytes) => set(JSON.parse(new TextDecoder().decode(bytes)))), []);
  return found;
}
/** The remarks at the beginning of a task's file, which contain the question. */
export const remarksOf = (text: string): string => /^(#.*\n)*/.exec(text)![0];
export const asked = (text: string): string => remarksOf(text).replace(/^# ?/gm, '').replace(/\n/g, ' ').trim();
/** Collective, ranks and limits: a schedule with another goal is not an answer to the task. */
const goal = (text: string): string => (text.slice(remarksOf(text).length).split('\n')[0] ?? '').replace(/#.*/, '').trim().replace(/\s+/g, ' ');
export const answersTo = (task: Beginning, text: string): boolean => goal(task.text) === goal(text);

/** The engine's own judgement of an answer to a task. */
export async function judged(task: string, answer: string, beginnings: Beginning[]): Promise<boolean> {
  const beginning = beginnings.find((one) => one.name === task);
  if (beginning && !answersTo(beginning, answer)) return false;
  const { json } = await ask(beginning ? { ask: 'check', text: answer } : { ask: 'formula', task, formula: answer });
  return !json.error && !!(beginning ? json.proved : json.right);
}

export function saveFile(name: string, text: string, type: string) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export function Mine() {
  const [, redraw] = useState({});
  useEffect(() => {
    const listener = () => redraw({});
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  const all = Object.entries(kept.results), right = (of: [string, Result][]) => of.filter(([, one]) => one.right).length;
  const tasks = all.filter(([task]) => !isGuess(task)), guesses = all.filter(([task]) => isGuess(task));
  return (
    <div class="card mine">
      <h3>Your results</h3>
      <p role="status">{right(tasks)} tasks solved{tasks.length > right(tasks) && `, ${tasks.length - right(tasks)} tried`}; {right(guesses)} of {guesses.length} guesses right (“What it costs” and “Break it”).</p>
      <div class="controls">
        <div class="field"><label for="results-name">your name</label><input id="results-name" value={kept.name} onChange={(e) => keep({ ...kept, name: e.currentTarget.value.trim() })} /></div>
        <button onClick={() => saveFile(`rankine-${kept.name.replace(/[^\p{L}\p{N}]+/gu, '-') || 'results'}.json`, JSON.stringify(kept, null, 1) + '\n', 'application/json')}>Save for the instructor</button>
        <button onClick={() => confirm('Delete your results in this browser?') && keep(fresh())}>Start again</button>
      </div>
      <p class="note">Your results stay in this browser. The file contains your name and your answers, and goes nowhere until you hand it in.</p>
    </div>
  );
}
