// Makes a handout to print: primitives, the questions and tasks of each lesson with room for answers, and the words.
import { Section, useAnswer } from './parts';
import type { Json } from './engine';
import { lessons } from './lessons';
import { asked, useBeginnings } from './results';
import { Pictures } from './primitives';
import { WordList } from './words';

const Room = ({ lines }: { lines: number }) => <div class="room" aria-hidden="true">{Array.from({ length: lines }, () => <i />)}</div>;

export function Handout() {
  const beginnings = useBeginnings();
  const formulas: Json[] = useAnswer({ ask: 'formula' })?.json.tasks ?? [];
  return (
    <>
      <Section id="handout" title="Collectives in six lessons" lead="Name:">
        <p class="screen"><button class="main" onClick={() => print()}>Print</button></p>
        <Pictures />
      </Section>
      {lessons.map((lesson, i) => (
        <section>
          <h2>{i + 1}. {lesson.title}</h2>
          <ol>
            {lesson.ask.map(([question]) => <li>{question}<Room lines={2} /></li>)}
            {beginnings.filter((one) => one.name.startsWith(`${i + 1}-`)).map((one) => <li><b>{one.name}.</b> {asked(one.text)}<Room lines={3} /></li>)}
            {lesson.formulas.map((name) => formulas.find((one) => one.task === name)).filter((one) => one).map((one) => (
              <li><b>{one!.task}.</b> {one!.question} <span class="note">{one!.letters.map((each: Json) => `${each.letter}: ${each.meaning}`).join('; ')}</span><Room lines={1} /></li>
            ))}
          </ol>
        </section>
      ))}
      <section><h2>Words</h2><WordList /></section>
    </>
  );
}
