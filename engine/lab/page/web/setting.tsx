// Shows an algorithm on a network as controls: shared by race, timeline and cost.
import { useMemo } from 'preact/hooks';
import type { Json } from './engine';
import { Bytes, Choice, errorOf, number, Slider, Steps, Text } from './parts';
import { useParam } from './state';

export interface Catalogue {
  collectives: { name: string; reduces: boolean; rooted: boolean }[];
  algorithms: Json[];
  networks: { name: string; source: string; words: string; wiring?: string }[];
  violations: { kind: string; rule: string }[];
}

export const linesOf = (catalogue: Catalogue, collective: string): Json[] => catalogue.algorithms.filter((line) => line.collective === collective);
export const lineOf = (catalogue: Catalogue, collective: string, name: string): Json | undefined =>
  catalogue.algorithms.find((line) => line.collective === collective && line.name === name);

/** Algorithms that usual() takes first; a link can select others. */
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

// Stops of the sliders; the fields beside them accept any value.
const alphas = ['', '100ns', '200ns', '500ns', '1us', '2us', '5us', '10us', '20us', '50us', '100us'];
const bandwidths = ['', '1GB/s', '5GB/s', '10GB/s', '25GB/s', '50GB/s', '100GB/s', '200GB/s', '400GB/s', '900GB/s', '1800GB/s'];
const portCounts = ['', '1', '2', '3', '4', '5', '6', '7', '8'];

/** Network, alpha, bandwidth, ports and wiring; an empty control uses the preset's value. */
export function useNetwork(section: string, first: Record<string, string> = {}) {
  const [network, setNetwork] = useParam(section + '.net', first.network ?? 'plain');
  const [alpha, setAlpha] = useParam(section + '.alpha', '');
  const [bandwidth, setBandwidth] = useParam(section + '.bw', '');
  const [ports, setPorts] = useParam(section + '.ports', first.ports ?? '');
  const [wiring, setWiring] = useParam(section + '.wiring', '');
  const [dims, setDims] = useParam(section + '.dims', '');
  const members = useMemo(
    () => ({
      network,
      ...(alpha && { alpha }),
      ...(bandwidth && { bandwidth }),
      ...(ports && { ports: number(ports) }),
      ...(wiring && { wiring }),
      ...(dims && { dims }),
    }),
    [network, alpha, bandwidth, ports, wiring, dims],
  );
  const own = ['alpha', 'bandwidth', 'ports', 'dims'];
  const wrong = (errors: (string | undefined)[]) => own.some((member) => errorOf(member, errors));
  const gridded = (catalogue: Catalogue) => ['torus', 'mesh'].includes(wiring || (catalogue.networks.find((one) => one.name === network)?.wiring ?? ''));
  const controls = (catalogue: Catalogue, errors: (string | undefined)[]) => (
    <>
      <Choice label="network" word="network" value={network} set={setNetwork} of={catalogue.networks.map((one) => [one.name, one.name])} />
      <Choice label="links shared as" value={wiring} set={setWiring} of={[['', 'the network’s'], ['full', 'not shared'], ['ring', 'a ring'], ['torus', 'a torus'], ['mesh', 'a mesh'], ['hypercube', 'a hypercube']]} />
      {(dims || gridded(catalogue)) && <Text label="its sizes, 4x4" value={dims} set={setDims} placeholder="preset" error={errorOf('dims', errors)} />}
      <Steps label="alpha, per message" word="alpha" value={alpha} set={setAlpha} of={alphas} error={errorOf('alpha', errors)} />
      <Steps label="bandwidth" word="bandwidth" value={bandwidth} set={setBandwidth} of={bandwidths} error={errorOf('bandwidth', errors)} />
      <Steps label="ports" word="port" value={ports} set={setPorts} of={portCounts} error={errorOf('ports', errors)} />
    </>
  );
  return { members, controls, network, ports, setPorts, wrong, set: Object.keys(members).length > 1 || network !== (first.network ?? 'plain') };
}

export function useSizes(section: string, ranks: string, bytes: string) {
  const [n, setN] = useParam(section + '.n', ranks);
  const [m, setM] = useParam(section + '.m', bytes);
  const controls = (errors: (string | undefined)[], withBytes = true) => (
    <>
      <Slider label="N, ranks" word="N" value={n} set={setN} least={2} most={64} error={errorOf('ranks', errors)} />
      {withBytes && <Bytes value={m} set={setM} error={errorOf('bytes', errors)} />}
    </>
  );
  return { n, m, setM, members: { ranks: number(n), bytes: m }, controls };
}

export function CollectiveChoice(props: { catalogue: Catalogue; value: string; set: (value: string) => void }) {
  return <Choice label="collective" word="collective" value={props.value} set={props.set} of={props.catalogue.collectives.map((one) => one.name)} />;
}
