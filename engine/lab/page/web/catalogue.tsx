// Shows the catalogue: all algorithms with formulas, citation, and an equivalent command.
import { useState } from 'preact/hooks';
import type { Json } from './engine';
import { words } from './format';
import { Choice, Computed, errorIn, errorOf, number, Section, Text, useAnswer } from './parts';
import type { Catalogue as Data } from './setting';
import { goTo, set, useParam } from './state';

const columns: [string, string][] = [['name', 'algorithm'], ['collective', 'collective'], ['rounds', 'rounds'], ['sent', 'sent / M'], ['send_ports', 'ports']];

/** Equivalent commands; for an algorithm that needs a switch that copies or adds, on a network with such a switch. */
function Commands({ line, ranks }: { line: Json; ranks: string }) {
  const question = { collective: line.collective, algorithm: line.name, ranks: number(ranks), bytes: '1M' };
  const plain = useAnswer({ ask: 'simulate', question });
  const switched = useAnswer(plain?.json.error ? { ask: 'simulate', question: { ...question, network: 'switch' } } : undefined);
  const more = plain?.json.error && switched && !switched.json.error ? ' --network switch' : '';
  const name = `${line.collective} --algo ${line.name} --ranks ${ranks}`;
  return <p data-asked={plain && (!plain.json.error || switched) ? line.name : ''}><code>rankine show {name}</code><br /><code>rankine simulate {name} --bytes 1M{more}</code></p>;
}

export function Catalogue({ catalogue }: { catalogue: Data }) {
  const [collective, setCollective] = useParam('catalogue.c', '');
  const [text, setText] = useParam('catalogue.text', '');
  const [n, setN] = useParam('catalogue.n', '');
  const [order, setOrder] = useParam('catalogue.by', '');
  const [open, setOpen] = useState('');
  const answer = useAnswer(n ? { ask: 'catalogue', ranks: number(n) } : { ask: 'catalogue' });
  const error = answer?.json.error as string | undefined;
  const lines: Json[] = answer && !error ? answer.json.algorithms : catalogue.algorithms;
  const shown = (line: Json, column: string): string => {
    if (column === 'name' || column === 'collective') return words(line[column]);
    if (line.at) return line.at.refused ? '–' : line.at[column];
    return line.readable[column];
  };
  const value = (line: Json): string | number => {
    const cell = shown(line, order);
    const [above, below = '1'] = cell.split('/');
    const ratio = Number(above) / Number(below);
    return Number.isFinite(ratio) ? ratio : cell;
  };
  const found = lines.filter((line) => (!collective || line.collective === collective) &&
    (!text || `${line.name} ${words(line.name)} ${line.summary} ${line.citation}`.toLowerCase().includes(text.toLowerCase())));
  if (order) {
    found.sort((a, b) => {
      const x = value(a), y = value(b);
      return typeof x === 'number' && typeof y === 'number' ? x - y : typeof x === 'number' ? -1 : typeof y === 'number' ? 1 : x.localeCompare(y);
    });
  }
  return (
    <Section id="catalogue" title="The catalogue" lead={`${catalogue.algorithms.length} algorithms of ${catalogue.collectives.length} collectives, with what they cost and where they come from.`}>
      <div class="controls">
        <Choice label="collective" value={collective} set={setCollective} of={[['', 'all'], ...catalogue.collectives.map((one) => [one.name, words(one.name)] as [string, string])]} />
        <Text label="with the words" value={text} set={setText} />
        <Text label="formulas at N =" value={n} set={setN} placeholder="any" error={errorOf('ranks', [errorIn(answer)])} />
      </div>
      <Computed of={[answer]}><div class="wide" tabIndex={0} role="region" aria-label="table of algorithms">
        <table>
          <thead>
            <tr>{columns.map(([key, title]) => <th scope="col" aria-sort={order === key ? 'ascending' : 'none'}><button onClick={() => setOrder(order === key ? '' : key)}>{title}{order === key ? ' ▲' : ''}</button></th>)}<th scope="col">source</th></tr>
          </thead>
          <tbody>
            {found.map((line) => {
              const id = line.collective + ' ' + line.name;
              return (
                <>
                  <tr class={line.at?.refused ? 'refused' : ''}>
                    <th scope="row"><button class="plain" aria-expanded={open === id} onClick={() => setOpen(open === id ? '' : id)}>{words(line.name)}</button></th>
                    {columns.slice(1).map(([key]) => <td class={key === 'collective' ? '' : 'formula'}>{shown(line, key)}</td>)}
                    <td class="source">{line.citation}</td>
                  </tr>
                  {open === id && (
                    <tr class="more">
                      <td colSpan={6}>
                        <p>{line.summary}.{line.needs && ` It needs: ${line.needs}.`}{line.at?.refused && ` ${line.at.refused}.`}</p>
                        <Commands line={line} ranks={n || '8'} />
                        <button onClick={() => {
                          set({ 'player.c': line.collective, 'player.a': line.name, 'player.k': '0', 'player.e': undefined, ...(n ? { 'player.n': n } : {}) });
                          goTo('player');
                        }}>Play it</button>
                      </td>
                    </tr>
                  )}
                </>
              );
            })}
          </tbody>
        </table>
      </div></Computed>
    </Section>
  );
}
