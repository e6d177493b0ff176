// Shows the seven primitives: the contents of each rank before and after.
import { useAnswers, Section } from './parts';
import { States } from './states';
import { card, galleryRequest, primitives } from './still';
import { goTo, set } from './state';
import { Word } from './words';

export function Primitives() {
  return (
    <Section id="primitives" title="The seven primitives" lead={<>Rows are <Word of="rank">ranks</Word>, columns are <Word of="block">blocks</Word>, and each colour marks the <Word of="contribution" /> of one rank. A cell with several colours is their sum.</>}>
      <Pictures />
    </Section>
  );
}

export function Pictures() {
  const answers = useAnswers(primitives.map(galleryRequest));
  return (
    <div class="gallery">
      {answers.map((answer, i) => {
        const p = primitives[i];
        return (
          <article class={'card ' + p.collective}>
            <h3>{p.title}</h3>
            <p>{p.says}</p>
            {answer.json.error ? <p class="error">{answer.json.error}</p> : <div dangerouslySetInnerHTML={{ __html: card(p, new States(answer)) }} />}
            {p.collective === 'all_reduce' && <p>It is a reduce-scatter and then an all-gather, and costs as much as both.</p>}
            <p class="where">{p.appears}</p>
            <button onClick={() => {
              set({ 'player.c': p.collective, 'player.a': p.algorithm, 'player.n': '4', 'player.k': '0', 'player.e': undefined });
              goTo('player');
            }}>Play it</button>
          </article>
        );
      })}
    </div>
  );
}
