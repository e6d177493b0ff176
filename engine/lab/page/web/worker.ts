// Answers requests in the worker; emscripten's code comes before it.
import { call } from './call';

declare const rankineEngine: (options: { wasmBinary: ArrayBuffer }) => Promise<any>;

let engine: Promise<any>;
self.onmessage = async ({ data }: MessageEvent) => {
  if (data.wasm) {
    engine = rankineEngine({ wasmBinary: data.wasm });
    return;
  }
  const { json, numbers } = call(await engine, data.text);
  (self as any).postMessage({ id: data.id, json, numbers }, [numbers.buffer]);
};
