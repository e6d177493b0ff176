import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { BreakIt } from './breakit';
import { Catalogue } from './catalogue';
import { Cost } from './cost';
import { ask, start } from './engine';
import { Papers } from './papers';
import { Planner } from './planner';
import { Player } from './player';
import { Primitives } from './primitives';
import { Race } from './race';
import { goTo, show } from './state';
import { Tasks } from './tasks';
import { Timeline } from './timeline';
import type { Catalogue as Data } from './setting';

const sections: [string, string][] = [
  ['race', 'Race'], ['primitives', 'Primitives'], ['player', 'Player'], ['timeline', 'Timeline'], ['cost', 'Cost'], ['break', 'Break it'],
  ['planner', 'Planner'], ['papers', 'Papers'], ['catalogue', 'Catalogue'],
  ['tasks', 'Tasks'],
];

function App({ catalogue }: { catalogue: Data }) {
  useEffect(show, []);
  return (
    <>
      <header class="top">
        <a class="name" href="#" onClick={(e) => (e.preventDefault(), scrollTo({ top: 0 }))}>Rankine</a>
        <nav aria-label="sections">{sections.map(([id, title]) => <a href={'#' + id} onClick={(e) => (e.preventDefault(), goTo(id))}>{title}</a>)}</nav>
      </header>
      <main>
        <div class="hero">
          <h1>How ranks talk to each other</h1>
          <p>Every collective algorithm of the literature, computed here, in this page, by the engine itself: exact times, a proof for any number of ranks, no server. What you set stands in the link.</p>
        </div>
        <Race catalogue={catalogue} />
        <Primitives />
        <Player catalogue={catalogue} />
        <Timeline catalogue={catalogue} />
        <Cost catalogue={catalogue} />
        <BreakIt catalogue={catalogue} />
        <Planner />
        <Papers catalogue={catalogue} />
        <Catalogue catalogue={catalogue} />
        <Tasks />
      </main>
      <footer><p>Rankine. The engine is the C++ that runs collectives on threads, compiled to WebAssembly; <code>rankine page --ask -</code> answers the same questions natively. Made with Preact (MIT), whose licence stands in the page’s source.</p></footer>
    </>
  );
}

start()
  .then(() => ask({ ask: 'catalogue' }))
  .then(({ json }) => {
    (window as any).rankine = { ask }; // for who wants to try, and for the tests
    const root = document.getElementById('app')!;
    root.replaceChildren();
    render(<App catalogue={json} />, root);
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  })
  .catch((error) => {
    document.getElementById('waiting')!.textContent = `The engine does not start in this browser: ${error}`;
  });
