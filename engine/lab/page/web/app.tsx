import { render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { BreakIt } from './breakit';
import { Catalogue } from './catalogue';
import { Cost } from './cost';
import { ask, start } from './engine';
import { Handout } from './handout';
import { Instructor } from './instructor';
import { Papers } from './papers';
import { Planner } from './planner';
import { Player } from './player';
import { Primitives } from './primitives';
import { Race } from './race';
import { goTo, set, show, useSection } from './state';
import { Tasks } from './tasks';
import { Timeline } from './timeline';
import type { Catalogue as Data } from './setting';
import { Word, Words } from './words';

const sections: [string, string][] = [
  ['race', 'Race'], ['primitives', 'Primitives'], ['player', 'Player'], ['timeline', 'Timeline'], ['cost', 'Cost'], ['break', 'Break it'],
  ['planner', 'Planner'], ['papers', 'Papers'], ['catalogue', 'Catalogue'],
  ['tasks', 'Tasks'],
];

/** Views for teachers, which replace the sections. */
const views: [string, string][] = [['instructor', 'For the instructor'], ['handout', 'Handout to print']];

function App({ catalogue }: { catalogue: Data }) {
  const section = useSection(), main = useRef<HTMLElement>(null);
  const view = views.some(([id]) => id === section) ? section : '';
  useEffect(show, [view]);
  return (
    <>
      <a class="skip" href="#content" onClick={(e) => (e.preventDefault(), main.current!.focus(), main.current!.scrollIntoView())}>Skip to the content</a>
      <header class="top">
        <a class="name" href="#" onClick={(e) => (e.preventDefault(), goTo(''), scrollTo({ top: 0 }))}>Rankine</a>
        <nav aria-label="sections">
          {sections.map(([id, title]) => <a href={'#' + id} onClick={(e) => (e.preventDefault(), goTo(id))}>{title}</a>)}
          <a href="#?words.at=all" onClick={(e) => (e.preventDefault(), set({ 'words.at': 'all' }))}>Words</a>
        </nav>
      </header>
      <main id="content" tabIndex={-1} ref={main}>
        {view === 'instructor' ? <Instructor /> : view === 'handout' ? <Handout /> : <Sections catalogue={catalogue} />}
      </main>
      <Words />
      <footer>
        <p>{views.map(([id, title], i) => <>{i > 0 && ' · '}<a href={'#' + id} onClick={(e) => (e.preventDefault(), goTo(id), scrollTo({ top: 0 }))}>{title}</a></>)}</p>
        <p>Rankine’s engine, which runs collectives on threads and processes, is C++; this page contains it, compiled to WebAssembly. <code>rankine page --ask -</code> gives the same answers on the command line. The page uses Preact (MIT); its licence is in the source of the page.</p>
      </footer>
    </>
  );
}

function Sections({ catalogue }: { catalogue: Data }) {
  return (
    <>
      <div class="hero">
        <h1>How ranks talk to each other</h1>
        <p>{catalogue.algorithms.length} algorithms for {catalogue.collectives.length} <Word of="collective">collectives</Word>, most of them from published papers. The engine in this page computes their times on models of networks and proves their schedules, in your browser and without a server. The link in the address bar keeps your settings.</p>
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
    </>
  );
}

start()
  .then(() => ask({ ask: 'catalogue' }))
  .then(({ json }) => {
    (window as any).rankine = { ask }; // for the console, and for the tests
    const root = document.getElementById('app')!;
    root.replaceChildren();
    render(<App catalogue={json} />, root);
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  })
  .catch((error) => {
    document.getElementById('waiting')!.textContent = `The engine does not start in this browser: ${error}`;
  });
