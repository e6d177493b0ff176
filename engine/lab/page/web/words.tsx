// Shows the words of the page: a panel over any section, which the words open.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { set, useParam } from './state';

/** Name, title, meaning. */
const all: [string, string, string][] = [
  ['rank', 'rank', 'One of the N participants of a collective: a process, a thread or a GPU. Ranks are numbered from 0.'],
  ['N', 'N', 'The number of ranks.'],
  ['M', 'M', 'The size of the vector in bytes that each rank brings to the collective, or receives from it.'],
  ['collective', 'collective', 'An operation that all ranks do together, for example an all-reduce. “The seven primitives” shows what each one does.'],
  ['block', 'block', 'A numbered piece of the vector. A message carries one or more blocks; a block keeps its number on its way.'],
  ['message', 'message', 'Data that one rank sends to another in one piece. It costs alpha, and beta for each of its bytes.'],
  ['round', 'round', 'A step of a schedule. All messages of a round read the data before any of them writes.'],
  ['schedule', 'schedule', 'The list of all messages of an algorithm, round by round: sender, receiver, blocks, and whether the receiver copies or adds.'],
  ['port', 'port', 'A connection of a rank to the network. A rank with k ports can send k messages and receive k messages at the same time; further messages wait.'],
  ['root', 'root', 'The rank that has the data at the start (broadcast, scatter), or gets the result (reduce, gather).'],
  ['alpha', 'alpha, α', 'The time that each message costs, however small it is: latency. “14 α” is the time of 14 messages, one after the other.'],
  ['beta', 'beta, β', 'The time that each byte of a message costs: 1 / bandwidth. “1.75 Mβ” is the time in which one port moves 1.75 times M bytes.'],
  ['bandwidth', 'bandwidth', 'How many bytes a port moves in a second: 1 / beta.'],
  ['network', 'network', 'The model on which times are computed: alpha, bandwidth and ports of each rank, and which links messages share (for example a ring or a torus).'],
  ['busbw', 'busbw', 'Bus bandwidth, as nccl-tests define it: the bytes that the busiest rank has to send at least, divided by the time. It can be compared with the bandwidth of a port, whatever N is.'],
  ['dataflow', 'dataflow', 'A message starts as soon as its own data are there and a port is free. The other rule is “rounds”: it waits until the whole round before has ended.'],
  ['segment', 'segment', 'A part of the vector that runs through the algorithm on its own. Several segments overlap: the second starts while the first is still on its way (pipelining).'],
  ['simulated', 'simulated', 'The engine plays every message of the schedule on the network’s model, with exact arithmetic. It is no measurement of a machine.'],
  ['formula', 'formula', 'The closed form that the catalogue gives for an algorithm: number of rounds × α + bytes of the busiest rank × β.'],
  ['crossover', 'crossover', 'The size M at which two algorithms take the same time; beyond it the other one is faster.'],
  ['proof', 'proof', 'The engine follows every contribution through the schedule. It is proved if each rank ends with each contribution exactly once, and no message reads data that are not there.'],
  ['contribution', 'contribution', 'The part of a sum that came from one rank.'],
  ['bucket', 'bucket', 'Gradients of several tensors, summed by one call.'],
  ['exposed', 'exposed, hidden', 'Communication is hidden while the rank computes at the same time, and adds no time. Exposed is the rest: the rank waits for it.'],
  ['bubble', 'bubble', 'The time in which a pipeline stage is idle, because it waits for other stages.'],
  ['micro_batch', 'micro-batch', 'A part of the batch. The stages of a pipeline work on several micro-batches at once.'],
  ['axes', 'tp, sp, ep, dp, pp', 'Ways to divide training among ranks. Tensor parallelism (tp) divides each matrix, sequence parallelism (sp) each sequence, expert parallelism (ep) the experts, data parallelism (dp) the batch, pipeline parallelism (pp) the layers.'],
  ['recompute', 'recomputation', 'Activations are not kept for the backward pass but computed again: less memory, more time.'],
  ['ZeRO', 'ZeRO', 'Data-parallel ranks divide among them the optimizer’s state (1), the gradients also (2), the parameters also (3), where otherwise each keeps all of it.'],
  ['orders', 'GPipe, 1F1B, ZB1P, ZB2P, ZB-V', 'Orders of forward and backward passes in a pipeline. GPipe does all forward passes first; 1F1B alternates and keeps fewer activations; the ZB orders split the backward pass, so that the bubble shrinks.'],
  ['router_skew', 'router skew', 'How many tokens the busiest rank of a mixture of experts gets, compared with the mean.'],
  ['utilisation', 'utilisation', 'Useful operations of the model per second, divided by the peak of all ranks: model FLOPs utilisation (MFU).'],
];

/** A link to a word's meaning; without children its text is the word's title. */
export function Word({ of, label, children }: { of: string; label?: string; children?: ComponentChildren }) {
  const title = all.find(([name]) => name === of)![1];
  return <a class={'word' + (label ? ' what' : '')} href={'#?words.at=' + of} aria-label={label} onClick={(e) => (e.preventDefault(), set({ 'words.at': of }))}>{children ?? title}</a>;
}

export const WordList = ({ at }: { at?: string }) => (
  <dl class="meanings">{all.map(([name, title, says]) => <div data-word={name} class={name === at ? 'picked' : ''}><dt>{title}</dt><dd>{says}</dd></div>)}</dl>
);

export function Words() {
  const [at, setAt] = useParam('words.at', '');
  const panel = useRef<HTMLElement>(null), before = useRef<Element | null>(null);
  const close = () => {
    setAt('');
    (before.current as HTMLElement | null)?.focus();
  };
  useEffect(() => {
    if (!at) return;
    if (!panel.current!.contains(document.activeElement)) before.current = document.activeElement;
    panel.current!.focus();
    // Scrolls only the panel, not the page behind it.
    const word = panel.current!.querySelector<HTMLElement>('.picked');
    panel.current!.scrollTop = word ? word.offsetTop - 60 : 0;
  }, [at]);
  if (!at) return null;
  return (
    <aside id="words" class="words" tabIndex={-1} ref={panel} aria-labelledby="words-title" onKeyDown={(e) => e.key === 'Escape' && close()}>
      <p class="head"><b id="words-title">Words</b><button onClick={close}>Close</button></p>
      <WordList at={at} />
    </aside>
  );
}
