// Controls that all sections share.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, type Answer, type Json } from './engine';
import { size, words } from './format';

export const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;

/** The answer to a request, and the one before until it is there. */
export function useAnswer(request: Json | undefined): Answer | undefined {
  const [answer, set] = useState<Answer>();
  const text = request && JSON.stringify(request);
  useEffect(() => {
    let current = true;
    if (text) ask(JSON.parse(text)).then((found) => current && set(found));
    return () => void (current = false);
  }, [text]);
  return answer;
}
export function useAnswers(requests: Json[]): Answer[] {
  const [answers, set] = useState<Answer[]>([]);
  const text = JSON.stringify(requests);
  useEffect(() => {
    let current = true;
    Promise.all(JSON.parse(text).map(ask)).then((found) => current && set(found as Answer[]));
    return () => void (current = false);
  }, [text]);
  return answers;
}

let ids = 0;
export function useId(): string {
  return useState(() => `f${++ids}`)[0];
}

/** The engine's errors begin with the member that they are about, behind the algorithm's name where it is a parameter of its own. */
export const errorOf = (member: string, errors: (string | undefined)[]): string | undefined =>
  errors.find((error) => {
    const own = error?.replace(/^\w+ '\w+': /, '');
    return own?.startsWith(member + ' ') || own?.startsWith(`--${member} `);
  });
const members = ['ranks', 'bytes', 'alpha', 'bandwidth', 'ports', 'dims', 'segments', 'root'];
/** Those that no control of ours is about. */
export const otherErrors = (errors: (string | undefined)[]): string[] => [
  ...new Set(errors.filter((error): error is string => !!error && !members.some((member) => errorOf(member, [error])))),
];

export function Field(props: { label: string; error?: string; children: (id: string, described?: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class={'field' + (props.error ? ' wrong' : '')}>
      <label for={id}>{props.label}</label>
      {props.children(id, props.error ? id + 'e' : undefined)}
      {props.error && (
        <p class="error" id={id + 'e'} role="status">
          {props.error}
        </p>
      )}
    </div>
  );
}

export function Text(props: { label: string; value: string; set: (value: string) => void; error?: string; placeholder?: string }) {
  return (
    <Field label={props.label} error={props.error}>
      {(id, described) => (
        <input id={id} aria-describedby={described} aria-invalid={!!props.error} value={props.value} placeholder={props.placeholder}
          size={8} spellcheck={false} onChange={(e) => props.set(e.currentTarget.value.trim())} />
      )}
    </Field>
  );
}

export function Choice(props: { label: string; value: string; set: (value: string) => void; of: (string | [string, string])[] }) {
  return (
    <Field label={props.label}>
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

/** A slider with a field beside it, where one may type what the slider does not reach. */
export function Slider(props: {
  label: string; value: string; set: (value: string) => void; least: number; most: number; error?: string; placeholder?: string;
  toSlider?: (text: string) => number; fromSlider?: (value: number) => string;
}) {
  const at = props.toSlider ? props.toSlider(props.value) : Number(props.value);
  return (
    <Field label={props.label} error={props.error}>
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
  return <Slider label={props.label ?? 'M, bytes per rank'} value={props.value} set={props.set} error={props.error} least={6} most={32}
    toSlider={sizePower} fromSlider={sizeText} />;
}

/** A slider over some texts; the first, an empty one, leaves it to the preset. */
export function Steps(props: { label: string; value: string; set: (value: string) => void; of: string[]; error?: string }) {
  return <Slider label={props.label} value={props.value} set={props.set} error={props.error} least={0} most={props.of.length - 1} placeholder="preset"
    toSlider={(text) => props.of.indexOf(text)} fromSlider={(step) => props.of[step]} />;
}

/** Ranks and numbers as JSON wants them; what is no number goes to the engine as it is, who says why not. */
export const number = (text: string): Json => (/^-?\d+$/.test(text) ? Number(text) : text);

/** A canvas that fills its parent's width, drawn anew where it or what it shows changes. */
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

// Asked for in every frame, and others only where light turns to dark.
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
