// The native tool's answers to the page's requests.
import { spawnSync } from 'node:child_process';

/** One answer per request, with its numbers if it has any. */
export function native(tool, requests) {
  const asked = spawnSync(tool, ['page', '--ask', '-'], {
    input: requests.map((one) => JSON.stringify(one)).join('\n') + '\n', maxBuffer: 2 ** 31 - 1, encoding: 'utf8',
  });
  if (asked.status !== 0) throw new Error(`${tool}: ${asked.stderr}`);
  return asked.stdout.trimEnd().split('\n').map((line) => {
    const { numbers = [], ...json } = JSON.parse(line);
    return { json, numbers };
  });
}

let failed = 0;
export function check(what, holds, more = '') {
  if (holds) {
    console.log(`ok    ${what}`);
  } else {
    ++failed;
    console.log(`WRONG ${what} ${more}`);
  }
}
export function note(text) {
  console.log(`note  ${text}`);
}
export const done = () => process.exit(failed === 0 ? 0 : 1);
