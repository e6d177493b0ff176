// Break it: makes a random change, from the seed in the link; the visitor predicts the verifier's answer.
import { useMemo, useState } from 'preact/hooks';
import type { Json } from './engine';
import { runs, words } from './format';
import { Choice, Computed, errorIn, otherErrors, Section, Text, useAnswer } from './parts';
import { editsOf, Editor, Proof } from './player';
import { linesOf, type Catalogue } from './setting';
import { record } from './results';
import { useParam } from './state';
import { States } from './states';

const saying = (edit: Json): string =>
  `round ${edit.round + 1}, transfer ${edit.transfer + 1}: ` +
  ({ delete: 'left out', double: 'done twice', redirect: `sent to rank ${edit.to} instead`, move: `done in round ${edit.into + 1} instead` } as Record<string, string>)[edit.do];

export function BreakIt({ catalogue }: { catalogue: Catalogue }) {
  const [seed, setSeed] = useParam('break.seed', '1');
  const [algorithm, setAlgorithm] = useParam('break.a', 'ring');
  const [n, setN] = useParam('break.n', '3');
  const [by, setBy] = useParam('break.by', 'chance');
  const [own, setOwn] = useParam('break.e', '[]');
  const [round, setRound] = useState('1');
  const [guess, setGuess] = useState<string>();
  const chance = by === 'chance';
  const edits = editsOf(own);
  const answer = useAnswer({
    ask: 'play', question: { collective: 'all_reduce', algorithm, ranks: /^\d+$/.test(n) ? Number(n) : n, bytes: 1024 },
    edits: chance ? [{ do: 'chance', seed: /^\d+$/.test(seed) ? Number(seed) : seed }] : edits,
  });
  const states = useMemo(() => (answer && !answer.json.error ? new States(answer) : undefined), [answer]);
  const json = answer?.json, error = json?.error as string | undefined, told = errorIn(answer);
  const truth = json && !error && !answer!.old ? (json.proof.proved ? 'proved' : json.proof.kind) : '';
  // The verifier's names without those that a single such change cannot cause.
  const possible = catalogue.violations.filter(({ kind }) => !['bad_shape', 'too_large', 'bad_index', 'bad_sizes', 'other_block', 'many_to_copy'].includes(kind));
  const kinds = ['proved', ...possible.map(({ kind }) => kind)];
  const choose = (kind: string) => {
    setGuess(kind);
    if (truth && chance) record(`break: ${algorithm} among ${n} ranks, seed ${seed}`, kind === truth, kind);
  };
  const next = (value: string) => (setGuess(undefined), setSeed(value));
  return (
    <Section id="break" title="Break it" lead="Below is an all-reduce with one change, random or your own. Does it still work? If not, which rule breaks? Guess first; then the verifier names the rule, the rank and the block.">
      <div class="controls">
        <Choice label="algorithm" value={algorithm} set={(value) => (setGuess(undefined), setOwn('[]'), setAlgorithm(value))} of={linesOf(catalogue, 'all_reduce').map((line) => line.name)} />
        <Text label="N, ranks" value={n} set={(value) => (setGuess(undefined), setOwn('[]'), setN(value))} error={told?.startsWith('ranks') ? told : undefined} />
        <Choice label="the change is made" value={by} set={(value) => (setGuess(undefined), setBy(value))} of={[['chance', 'at random'], ['hand', 'by hand']]} />
        {chance && <Text label="seed" value={seed} set={next} error={told?.startsWith('seed') ? told : undefined} />}
        {chance && <button onClick={() => next(String((Number(seed) || 0) + 1))}>Another one</button>}
      </div>
      {!chance && states && (
        <>
          <Choice label="round" value={round} set={setRound} of={Array.from({ length: states.rounds }, (_, k) => String(k + 1))} />
          <Editor states={states} round={Math.min(states.rounds, Number(round))} edits={edits} set={(changed) => (setGuess(undefined), setOwn(JSON.stringify(changed)))} />
        </>
      )}
      {otherErrors([told]).filter((text) => !text.startsWith('seed')).map((text) => <p class="error" role="status">{text}</p>)}
      <Computed of={[answer]}>{json && !error && (
        <>
          <ol class="rounds">
            {json.transfers.map((transfers: Json[], k: number) => (
              <li><b>round {k + 1}</b>{transfers.slice(0, 40).map((t) => <span class={'chip ' + t.act}>{runs(t.from)} → {runs(t.to)} {t.act === 'reduce' ? 'adds' : 'copies'} {runs(t.what)}</span>)}</li>
            ))}
          </ol>
          <p class="buttons" role="group" aria-label="your guess">
            {kinds.map((kind) => <button aria-pressed={guess === kind} onClick={() => choose(kind)}>{kind === 'proved' ? 'still right' : words(kind)}</button>)}
          </p>
          <details>
            <summary>What these answers mean</summary>
            <dl class="meanings">{possible.map(({ kind, rule }) => <div><dt>{words(kind)}</dt><dd>breaks the rule: {rule}</dd></div>)}</dl>
          </details>
          {guess !== undefined && (
            <>
              <p role="status" class={guess === truth ? 'good' : 'bad'}>{guess === truth ? 'Yes.' : 'No.'} {json.edits.length > 0 ? `The change: ${json.edits.map(saying).join('; ')}.` : 'Nothing was changed.'}</p>
              <Proof proof={json.proof} ranks={json.ranks} />
            </>
          )}
        </>
      )}</Computed>
    </Section>
  );
}
