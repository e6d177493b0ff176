// An algorithm on a network, as controls: what race, timeline and cost have in common.
import { useMemo } from 'preact/hooks';
import type { Json } from './engine';
import { Bytes, Choice, errorOf, number, Slider, Text } from './parts';
import { useParam } from './state';

export interface Catalogue {
  collectives: { name: string; reduces: boolean; rooted: boolean }[];
  algorithms: Json[];
  networks: { name: string; source: string; words: string }[];
  violations: string[];
}

export const linesOf = (catalogue: Catalogue, collective: string): Json[] => catalogue.algorithms.filter((line) => line.collective === collective);
export const lineOf = (catalogue: Catalogue, collective: string, name: string): Json | undefined =>
  catalogue.algorithms.find((line) => line.collective === collective && line.name === name);

/** Three that are there for any collective; a link may say otherwise. */
const favourites = ['ring', 'recursive_doubling', 'halving_doubling', 'double_tree', 'direct', 'bruck', 'binomial_near', 'chain', 'pairwise', 'linear'];
export function usual(catalogue: Catalogue, collective: string, count: number): string[] {
  const names = linesOf(catalogue, collective).map((line) => line.name);
  const first = favourites.filter((name) => names.includes(name));
  return [...first, ...names.filter((name) => !first.includes(name))].slice(0, count);
}

export function question(catalogue: Catalogue, collective: string, algorithm: string, more: Json): Json {
  const takes = lineOf(catalogue, collective, algorithm)?.parameters ?? [];
  return { collective, algorithm, ...(takes.includes('segments') ? { segments: 'auto' } : {}), ...more };
}

/** Network, alpha, bandwidth, ports and wiring; what is left empty is the preset's. */
export function useNetwork(section: string, first: Record<string, string> = {}) {
  const [network, setNetwork] = useParam(section + '.net', first.network ?? 'plain');
  const [alpha, setAlpha] = useParam(section + '.alpha', '');
  const [bandwidth, setBandwidth] = useParam(section + '.bw', '');
  const [ports, setPorts] = useParam(section + '.ports', first.ports ?? '');
  const [wiring, setWiring] = useParam(section + '.wiring', '');
  const members = useMemo(
    () => ({
      network,
      ...(alpha && { alpha }),
      ...(bandwidth && { bandwidth }),
      ...(ports && { ports: number(ports) }),
      ...(wiring && { wiring }),
    }),
    [network, alpha, bandwidth, ports, wiring],
  );
  const controls = (catalogue: Catalogue, errors: (string | undefined)[]) => (
    <>
      <Choice label="network" value={network} set={setNetwork} of={catalogue.networks.map((one) => [one.name, one.name])} />
      <Choice label="links shared as" value={wiring} set={setWiring} of={[['', 'the network’s'], ['full', 'not shared'], ['ring', 'a ring'], ['torus', 'a torus'], ['mesh', 'a mesh'], ['hypercube', 'a hypercube']]} />
      <Text label="alpha, per message" value={alpha} set={setAlpha} placeholder="preset" error={errorOf('alpha', errors)} />
      <Text label="bandwidth" value={bandwidth} set={setBandwidth} placeholder="preset" error={errorOf('bandwidth', errors)} />
      <Text label="ports" value={ports} set={setPorts} placeholder="preset" error={errorOf('ports', errors)} />
    </>
  );
  return { members, controls, network };
}

export function useSizes(section: string, ranks: string, bytes: string) {
  const [n, setN] = useParam(section + '.n', ranks);
  const [m, setM] = useParam(section + '.m', bytes);
  const controls = (errors: (string | undefined)[], withBytes = true) => (
    <>
      <Slider label="N, ranks" value={n} set={setN} least={2} most={64} error={errorOf('ranks', errors)} />
      {withBytes && <Bytes value={m} set={setM} error={errorOf('bytes', errors)} />}
    </>
  );
  return { n, m, setM, members: { ranks: number(n), bytes: m }, controls };
}

export function CollectiveChoice(props: { catalogue: Catalogue; value: string; set: (value: string) => void }) {
  return <Choice label="collective" value={props.value} set={props.set} of={props.catalogue.collectives.map((one) => one.name)} />;
}
