// Sends requests to the engine in its worker and returns the answers. The page shows only such answers.

export type Json = any;
export interface Answer {
  json: Json; // has `error` if the engine refuses
  numbers: Float64Array;
}

let worker: Worker | undefined;
const waiting = new Map<number, (answer: Answer) => void>();
const known = new Map<string, Promise<Answer>>();
let last = 0;

export const bytesOf = async (id: string): Promise<ArrayBuffer> => {
  const text = document.getElementById(id)!.textContent!.trim();
  const zipped = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([zipped]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
};

export async function start(): Promise<void> {
  const code = await bytesOf('engine-code');
  const wasm = await bytesOf('engine-wasm');
  worker = new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })));
  worker.onmessage = ({ data }) => {
    waiting.get(data.id)?.({ json: JSON.parse(data.json), numbers: data.numbers });
    waiting.delete(data.id);
  };
  worker.postMessage({ wasm }, [wasm]);
}

/** Sends each request only once; the engine is a pure function. */
export function ask(request: Json): Promise<Answer> {
  const text = JSON.stringify(request);
  const before = known.get(text);
  if (before) return before;
  const answer = new Promise<Answer>((resolve) => {
    const id = ++last;
    waiting.set(id, resolve);
    worker!.postMessage({ id, text });
  });
  known.set(text, answer);
  // Keeps 200 answers, because some answers are large.
  if (known.size > 200) known.delete(known.keys().next().value!);
  return answer;
}
