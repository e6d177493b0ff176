// Shows the papers: each claim with the native engine's verdict, computed when the page was built.
import { useEffect, useState } from 'preact/hooks';
import { bytesOf, type Json } from './engine';
import { words } from './format';
import { Figures } from './figures';
import { Choice, Section, Text } from './parts';
import { goTo, set, useParam } from './state';
import { lineOf, type Catalogue } from './setting';

const verdicts: Record<string, string> = { holds: 'holds', holds_if: 'holds if', does_not_hold: 'does not hold', not_reproduced: 'not reproduced' };

const plural: Record<string, string> = { holds: 'hold', holds_if: 'hold if a condition is met', does_not_hold: 'do not hold', not_reproduced: 'are not reproduced' };

const kinds: Record<string, string> = { executed: 'executed', arithmetic: 'arithmetic', definition: 'definition', own_formula: 'own formula' };

export function Papers({ catalogue }: { catalogue: Catalogue }) {
  const [claims, setClaims] = useState<Json>();
  const [paper, setPaper] = useParam('papers.paper', '');
  const [verdict, setVerdict] = useParam('papers.verdict', '');
  const [kind, setKind] = useParam('papers.kind', '');
  const [text, setText] = useParam('papers.text', '');
  const [shown, show] = useState(12);
  useEffect(() => void bytesOf('claims').then((bytes) => setClaims(JSON.parse(new TextDecoder().decode(bytes)))), []);
  const all: Json[] = claims?.claims ?? [];
  const found = all.filter((one) => (!paper || one.paper === paper) && (!verdict || one.verdict === verdict) && (!kind || one.kind === kind) &&
    (!text || `${one.where} ${one.id} ${one.claim} ${one.runs} ${one.why}`.toLowerCase().includes(text.toLowerCase())));
  // A text like "scatter: reduce_scatter ring; segments=4 | ..." names a line of the catalogue.
  const playable = (one: Json): [string, string] | undefined => {
    const [, collective, algorithm] = /^(?:\w+: )?(\w+) (\w+)/.exec(one.runs ?? '') ?? [];
    return collective && lineOf(catalogue, collective, algorithm) ? [collective, algorithm] : undefined;
  };
  return (
    <Section id="papers" title="The papers" lead={claims ? `${claims.counts.claims} claims of papers and lessons; the engine has computed both sides of each. Of ${claims.counts.kinds.executed.claims} that run a schedule ${Object.keys(verdicts).map((v) => `${claims.counts.kinds.executed[v]} ${plural[v]}`).join(', ')}; the others are arithmetic, definitions or Rankine’s own formulas.` : 'Claims and their verdicts.'}>
      <div class="controls">
        <Choice label="paper" value={paper} set={(value) => (show(12), setPaper(value))} of={[['', 'all'], ...[...new Set(all.map((one) => one.paper as string))].map((p) => [p, p] as [string, string])]} />
        <Choice label="verdict" value={verdict} set={(value) => (show(12), setVerdict(value))} of={[['', 'all'], ...Object.entries(verdicts)]} />
        <Choice label="kind" value={kind} set={(value) => (show(12), setKind(value))} of={[['', 'all'], ...Object.entries(kinds)]} />
        <Text label="with the words" value={text} set={setText} />
      </div>
      <p class="buttons" role="group" aria-label="exercises of the chapter">
        {[1, 2, 3, 4, 5, 6].map((k) => `exercise ${k}`).map((exercise) => (
          <button aria-pressed={text === exercise} onClick={() => (show(12), setText(text === exercise ? '' : exercise))}>{exercise.replace('e', 'E')}</button>
        ))}
      </p>
      <ul class="claims">
        {found.slice(0, shown).map((one) => (
          <li class="card">
            <p><span class={'badge ' + one.verdict}>{verdicts[one.verdict]}{one.condition ? ' ' + one.condition : ''}{one.exception ? ', but where ' + one.exception : ''}</span> <b>{one.where}</b> <span class="note">{kinds[one.kind]}</span></p>
            <p>{one.claim}</p>
            {(one.stated || one.printed) && <p class="note"><code>{one.printed || one.stated}</code>{one.found && <> {one.relation} <code>{one.found}</code></>}{one.shown && `, with ${one.shown.with}: stated ${one.printed || one.shown.stated.exact || one.shown.stated.number}, found ${one.shown.found.exact ?? one.shown.found.number}`}</p>}
            {(one.why || one.reason) && <p>{one.why || one.reason}</p>}
            {playable(one) && (
              <button onClick={() => {
                const [collective, algorithm] = playable(one)!;
                set({ 'player.c': collective, 'player.a': algorithm, 'player.k': '0', 'player.e': undefined });
                goTo('player');
              }}>Play {words(playable(one)![1])}</button>
            )}
          </li>
        ))}
      </ul>
      <p class="note" role="status">{Math.min(shown, found.length)} of {found.length}</p>
      {found.length > shown && <button onClick={() => show(shown + 24)}>More</button>}
      <h3 class="figures">Figures of the papers, drawn from the engine’s schedules</h3>
      <Figures />
    </Section>
  );
}
