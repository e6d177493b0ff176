// The engine of the page under Node: every answer equals the native tool's, to the last bit. engine_test.mjs ENGINE.js TOOL
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { check, done, native, note } from './native.mjs';

const [file, tool] = process.argv.slice(2);
const engine = await createRequire(import.meta.url)(resolve(file))({ wasmBinary: readFileSync(resolve(file).replace(/\.js$/, '.wasm')) });

function wasm(request) {
  const text = JSON.stringify(request), size = engine.lengthBytesUTF8(text) + 1, at = engine._malloc(size);
  engine.stringToUTF8(text, at, size);
  const json = JSON.parse(engine.UTF8ToString(engine._rankine_answer(at)));
  engine._free(at);
  const first = engine._rankine_numbers() / 8;
  return { json, numbers: Array.from(engine.HEAPF64.subarray(first, first + engine._rankine_number_count())) };
}
// JSON has null for NaN and infinities.
const same = (a, b) => JSON.stringify(a.json) === JSON.stringify(b.json) && JSON.stringify(a.numbers) === JSON.stringify(b.numbers);

const { algorithms, networks } = wasm({ ask: 'catalogue' }).json;
const requests = [{ ask: 'catalogue' }, { ask: 'catalogue', ranks: 12 }];
algorithms.forEach((line, i) => {
  for (const ranks of [1, 2, 5, 8, 9]) {
    const question = {
      collective: line.collective, algorithm: line.name, ranks, bytes: 1000003 * (i % 3), network: networks[(i + ranks) % networks.length].name,
      sync: i % 2 ? 'rounds' : 'dataflow', ...(line.parameters.includes('segments') ? { segments: ranks % 2 ? 3 : 'auto' } : {}),
    };
    requests.push({ ask: 'simulate', question }, { ask: 'messages', question }, { ask: 'play', question },
      { ask: 'simulate', question: { ...question, fidelity: 'flow', wiring: 'ring' } },
      { ask: 'play', question, edits: [{ do: 'chance', seed: i }, { do: 'chance', seed: ranks }] });
  }
});
requests.push(
  { ask: 'curve', over: 'bytes', values: [64, 4096, 1 << 20, 1 << 28], questions: algorithms.filter((line) => line.collective === 'all_reduce').map((line) => ({ collective: 'all_reduce', algorithm: line.name, ranks: 6 })) },
  { ask: 'curve', over: 'ranks', values: [2, 3, 4, 12], questions: [{ collective: 'broadcast', algorithm: 'chain', bytes: '1M', segments: 'auto' }] },
);
for (const model of ['gpt2', 'gpt_175b', 'nowhere']) {
  for (const axes of [{}, { tp: 2, dp: 2, pp: 4, micro_batches: 8 }, { dp: 8, zero: 3, recompute: 'full' }, { pp: 2, order: 'zb1p', micro_batches: 4 }, { tp: 5 }, { tp: 0 }]) requests.push({ ask: 'plan', model, ...axes });
}
for (const text of ['all_gather 2\nround\n0 <-> 1: 0\n', 'all_gather 2\nround\n0 -> 1: 0\n1 -> 0: 1\n']) requests.push({ ask: 'check', text });
requests.push({ ask: 'formula' });
wasm({ ask: 'formula' }).json.tasks.forEach(({ task }, seed) => requests.push({ ask: 'formula', task, formula: '2*3', seed }));
for (const line of algorithms.filter((one) => one.collective === 'all_reduce')) {
  requests.push({ ask: 'buckets', question: { collective: 'all_reduce', algorithm: line.name, ranks: 8, bytes: '4M' }, backward: '20ms', tensors: 48 });
}
const wrong = [
  null, 5, [], {}, { ask: 'nothing' }, { ask: 7 }, { ask: 'simulate' }, { ask: 'simulate', question: 3 }, { ask: 'catalogue', ranks: -1 },
  ...[{ ranks: 0 }, { ranks: 1e9 }, { ranks: 'x' }, { bytes: '1e99' }, { bytes: -1 }, { algorithm: 'rnig' }, { network: { prots: 1 } }, { ports: 0 },
    { wiring: 'torus', dims: '3x3' }, { alpha: '1 parsec' }, { segments: 0 }].map((member) => ({ ask: 'messages', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 8, bytes: 8, ...member } })),
  { ask: 'curve', over: 'colours', values: [1], questions: [{}] }, { ask: 'curve', over: 'bytes', values: [], questions: [{}] },
  { ask: 'curve', over: 'bytes', values: ['x'], questions: [{}] }, { ask: 'curve', over: 'bytes', values: [1], questions: [7] },
  { ask: 'play', question: { collective: 'all_to_all', algorithm: 'direct', ranks: 200, bytes: 8 } },
  { ask: 'check' }, { ask: 'check', text: 'all_gather' }, { ask: 'formula', task: 'none', formula: '1' }, { ask: 'formula', task: 'ring_bytes', formula: '2*(' }, { ask: 'buckets' },
  ...[7, [7], [{}], [{ do: 'delete', round: 99, transfer: 0 }], [{ do: 'redirect', round: 0, transfer: 0, to: 8 }], [{ do: 'chance' }], [{ do: 'chance', seed: -1 }], [{ do: 'move', round: 0, transfer: 0 }]]
    .map((edits) => ({ ask: 'play', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 8, bytes: 8 }, edits })),
];
const answers = native(tool, [...requests, ...wrong]);
check('the native tool answers every request', answers.length === requests.length + wrong.length, `${answers.length}`);

let different = 0, refused = 0, broken = 0, numbers = 0;
requests.forEach((request, i) => {
  const here = wasm(request);
  numbers += here.numbers.length;
  refused += here.json.error ? 1 : 0;
  broken += here.json.proof && !here.json.proof.proved ? 1 : 0;
  if (same(here, answers[i])) return;
  if (++different < 4) console.log(JSON.stringify(request), '\n', JSON.stringify(here).slice(0, 600), '\n', JSON.stringify(answers[i]).slice(0, 600));
});
note(`${requests.length} requests, ${numbers} numbers, ${refused} refused by both, ${broken} changed schedules that the verifier does not let pass`);
check('every answer is the native one', different === 0, `${different} differ`);
check('most requests have an answer', refused < requests.length / 2, `${refused}`);
check('most changes break something', broken > algorithms.length, `${broken}`);
wrong.forEach((request, i) => {
  const here = wasm(request), there = answers[requests.length + i];
  check(`refused alike: ${JSON.stringify(request).slice(0, 90)}`, typeof here.json.error === 'string' && same(here, there), JSON.stringify([here.json, there.json]));
});
check('no text at all is refused', typeof JSON.parse(engine.UTF8ToString(engine._rankine_answer(0))).error === 'string');
done();
