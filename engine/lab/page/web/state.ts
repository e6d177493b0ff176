// Keeps the visitor's settings in the link, behind its #: #section?key=value&...
import { useEffect, useState } from 'preact/hooks';

const listeners = new Set<() => void>();
let section = '';
let values = new URLSearchParams();

function read() {
  const [name, rest = ''] = location.hash.slice(1).split('?');
  section = name;
  values = new URLSearchParams(rest);
  listeners.forEach((listener) => listener());
}
read();
addEventListener('hashchange', read);

function write() {
  const rest = values.toString();
  history.replaceState(null, '', `#${section}${rest ? '?' + rest : ''}`);
  listeners.forEach((listener) => listener());
}

/** Keys begin with their section's name and a dot. Defaults are left out. */
export function set(changes: Record<string, string | undefined>) {
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined) values.delete(key);
    else values.set(key, value);
    // The panel of words can open in any section.
    if (!key.startsWith('words.')) section = key.split('.')[0];
  }
  write();
}

function useLink() {
  const [, redraw] = useState({});
  useEffect(() => {
    const listener = () => redraw({});
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
}

export function useSection(): string {
  useLink();
  return section;
}

export function useParam(key: string, otherwise: string): [string, (value: string) => void] {
  useLink();
  const value = values.get(key) ?? otherwise;
  return [value, (next) => set({ [key]: next === otherwise ? undefined : next })];
}

export function goTo(name: string) {
  section = name;
  write();
  show();
}
export function show() {
  const target = section && document.getElementById(section);
  if (target) target.scrollIntoView();
}
