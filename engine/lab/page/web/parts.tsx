// Defines controls that all sections share.
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask, type Answer, type Json } from './engine';
import { size, words } from './format';
import { Word } from './words';

export const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;

/** An answer on the screen; `old` while the engine still computes the answer to the present request. */
export type Shown = Answer & { old: boolean };

/** The answers to requests; until all of them are there, the answers to the earlier requests, marked `old`. */
export function useAnswers(requests: Json[]): Shown[] {
  const [found, set] = useState<{ to: string; answers: Answer[] }>({ to: '[]', answers: [] });
  const text = JSON.stringify(requests);
  useEffect(() => {
    let current = true;
    Promise.all(JSON.parse(text).map(ask)).then((answers) => current && set({ to: text, answers: answers as Answer[] }));
    return () => void (current = false);
  }, [text]);
  const old = found.to !== text;
  return useMemo(() => found.answers.map((answer) => ({ ...answer, old })), [found, old]);
}
export const useAnswer = (request: Json | undefined): Shown | undefined => useAnswers(request ? [request] : [])[0];

export const errorIn = (answer: Shown | undefined): string | undefined => (answer && !answer.old ? answer.json.error : undefined);

/** Surrounds figures from answers: marks them while they are old or missing. */
export function Computed(props: { of: (Shown | undefined)[]; children: ComponentChildren }) {
  const busy = props.of.length === 0 || props.of.some((one) => !one || one.old);
  return (
    <div class="computed" aria-busy={busy}>
      {props.children}
      {busy && <p class="computing">computing …</p>}
    </div>
  );
}

let ids = 0;
export function useId(): string {
  return useState(() => `f${++ids}`)[0];
}

/** The engine's error begins with the name of the member at fault; for an algorithm's own parameter the algorithm's name comes first. */
export const errorOf = (member: string, errors: (string | undefined)[]): string | undefined =>
  errors.find((error) => {
    const own = error?.replace(/^\w+ '\w+': /, '');
    return own?.startsWith(member + ' ') || own?.startsWith(`--${member} `);
  });
const members = ['ranks', 'bytes', 'alpha', 'bandwidth', 'ports', 'dims', 'segments', 'root'];
/** Errors that belong to no control. */
export const otherErrors = (errors: (string | undefined)[]): string[] => [
  ...new Set(errors.filter((error): error is string => !!error && !members.some((member) => errorOf(member, [error])))),
];

/** `word`: a word of words.tsx, shown behind a question mark. */
export function Field(props: { label: string; word?: string; error?: string; children: (id: string, described?: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class={'field' + (props.error ? ' wrong' : '')}>
      <span class="name">
        <label for={id}>{props.label}</label>
        {props.word && <Word of={props.word} label={`what ${words(props.word)} means`}>?</Word>}
      </span>
      {props.children(id, props.error ? id + 'e' : undefined)}
      {props.error && (
        <p class="error" id={id + 'e'} role="status">
          {props.error}
        </p>
      )}
    </div>
  );
}

export function Text(props: { label: string; word?: string; value: string; set: (value: string) => void; error?: string; placeholder?: string }) {
  return (
    <Field label={props.label} word={props.word} error={props.error}>
      {(id, described) => (
        <input id={id} aria-describedby={described} aria-invalid={!!props.error} value={props.value} placeholder={props.placeholder}
          size={8} spellcheck={false} onChange={(e) => props.set(e.currentTarget.value.trim())} />
      )}
    </Field>
  );
}

export function Choice(props: { label: string; word?: string; value: string; set: (value: string) => void; of: (string | [string, string])[] }) {
  return (
    <Field label={props.label} word={props.word}>
      {(id) => (
        <select id={id} value={props.value} onChange={(e) => props.set(e.currentTarget.value)}>
          {props.of.map((one) => {
            const [value, text] = typeof one === 'string' ? [one, words(one)] : one;
            return <option value={value} selected={value === props.value}>{text}</option>;
          })}
        </select>
      )}
    </Field>
  );
}

/** A slider with a field beside it for values beyond the slider's range. */
export function Slider(props: {
  label: string; word?: string; value: string; set: (value: string) => void; least: number; most: number; error?: string; placeholder?: string;
  toSlider?: (text: string) => number; fromSlider?: (value: number) => string;
}) {
  const at = props.toSlider ? props.toSlider(props.value) : Number(props.value);
  return (
    <Field label={props.label} word={props.word} error={props.error}>
      {(id, described) => (
        <span class="slider">
          <input type="range" id={id} min={props.least} max={props.most} value={Number.isFinite(at) ? at : props.least}
            aria-valuetext={props.value || props.placeholder} onInput={(e) => props.set((props.fromSlider ?? String)(Number(e.currentTarget.value)))} />
          <input aria-label={props.label + ', typed'} aria-describedby={described} aria-invalid={!!props.error} value={props.value} size={6} placeholder={props.placeholder}
            spellcheck={false} onChange={(e) => props.set(e.currentTarget.value.trim())} />
        </span>
      )}
    </Field>
  );
}

const units = ['', 'K', 'M', 'G'];
export const sizeText = (power: number): string => `${2 ** (power % 10)}${units[Math.floor(power / 10)]}`;
export const sizePower = (text: string): number => {
  const found = /^([\d.]+)([KMG]?)/.exec(text);
  return found ? Math.round(Math.log2(Number(found[1])) + 10 * units.indexOf(found[2])) : NaN;
};
export function Bytes(props: { label?: string; value: string; set: (value: string) => void; error?: string }) {
  return <Slider label={props.label ?? 'M, bytes per rank'} word="M" value={props.value} set={props.set} error={props.error} least={6} most={32}
    toSlider={sizePower} fromSlider={sizeText} />;
}

/** A slider over some texts; the first text is empty and selects the preset's value. */
export function Steps(props: { label: string; word?: string; value: string; set: (value: string) => void; of: string[]; error?: string }) {
  return <Slider label={props.label} word={props.word} value={props.value} set={props.set} error={props.error} least={0} most={props.of.length - 1} placeholder="preset"
    toSlider={(text) => props.of.indexOf(text)} fromSlider={(step) => props.of[step]} />;
}

/** A number for JSON; any other text goes to the engine unchanged, which refuses it with a reason. */
export const number = (text: string): Json => (/^-?\d+$/.test(text) ? Number(text) : text);

/** A canvas as wide as its parent; redrawn when its size or its contents change. */
export function Canvas(props: {
  height: number | ((width: number) => number); draw: (g: CanvasRenderingContext2D, width: number, height: number) => void; label: string;
  onPoint?: (x: number, y: number, click: boolean) => void; onKey?: (event: KeyboardEvent) => void;
}) {
  const ref = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const paint = () => {
    const canvas = ref.current;
    if (!canvas) return;
    const width = canvas.parentElement!.clientWidth;
    const height = typeof latest.current.height === 'number' ? latest.current.height : latest.current.height(width);
    const dense = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
      canvas.width = Math.round(width * dense);
      canvas.height = Math.round(height * dense);
      canvas.style.height = height + 'px';
    }
    const g = canvas.getContext('2d')!;
    g.setTransform(dense, 0, 0, dense, 0, 0);
    g.clearRect(0, 0, width, height);
    latest.current.draw(g, width, height);
  };
  useEffect(paint);
  useEffect(() => {
    const observer = new ResizeObserver(paint);
    observer.observe(ref.current!.parentElement!);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', paint);
    return () => (observer.disconnect(), dark.removeEventListener('change', paint));
  }, []);
  const point = (click: boolean) => (e: MouseEvent) => {
    const box = ref.current!.getBoundingClientRect();
    props.onPoint?.(e.clientX - box.left, e.clientY - box.top, click);
  };
  return <canvas ref={ref} role="img" aria-label={props.label} tabIndex={props.onKey ? 0 : undefined} onMouseMove={point(false)} onClick={point(true)} onKeyDown={props.onKey} />;
}

// A cache, because every frame asks for colours; emptied only if light turns to dark or back.
const colours = new Map<string, string>();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => colours.clear());
export const colour = (name: string): string => {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim());
  return colours.get(name)!;
};
export const lanes = ['lane0', 'lane1', 'lane2', 'lane3'];

export function Section(props: { id: string; title: string; lead: ComponentChildren; children: ComponentChildren }) {
  return (
    <section id={props.id} aria-labelledby={props.id + '-title'}>
      <h2 id={props.id + '-title'}>{props.title}</h2>
      <p class="lead">{props.lead}</p>
      {props.children}
    </section>
  );
}

export { size };
