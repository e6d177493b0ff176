// Calls the C interface of engine.h from JavaScript.
export function call(engine: any, request: string): { json: string; numbers: Float64Array } {
  const size = engine.lengthBytesUTF8(request) + 1;
  const text = engine._malloc(size);
  engine.stringToUTF8(request, text, size);
  const answer = engine._rankine_answer(text);
  engine._free(text);
  const first = engine._rankine_numbers() / 8;
  // A copy, because the next call overwrites the engine's memory.
  const numbers = engine.HEAPF64.slice(first, first + engine._rankine_number_count());
  return { json: engine.UTF8ToString(answer), numbers };
}
