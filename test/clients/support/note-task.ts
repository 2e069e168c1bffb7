import { expect } from 'vitest'
import { CHAT_MODEL, MESSAGES_MODEL } from '../../harness/sdk-clients.ts'
import { uniqueName } from '../../harness/tenant.ts'
import type { Bench } from './client-bench.ts'
import { expectRecorded, modelCalls, upstreamCalls } from './governed-calls.ts'
import type { LibraryOutcome } from './library-run.ts'
import { type ScriptedTurn, scriptTurns, TURN_USAGE } from './scripted-turns.ts'
import { type Told, toldConversation } from './told-conversation.ts'

/** A model of each protocol, and one whose thinking must come back as it was. */
export const NOTE_MODELS = [
  { model: CHAT_MODEL, protocol: 'chat', thinks: false },
  { model: MESSAGES_MODEL, protocol: 'messages', thinks: false },
] as const
export const THINKING_MODEL = {
  model: 'scripted-messages-thinking',
  protocol: 'messages',
  thinks: true,
} as const

type NoteModel = (typeof NOTE_MODELS)[number] | typeof THINKING_MODEL

export interface NoteTask {
  prompt: string
  /** Whether the model thinks before each of its turns with calls. */
  thinks: boolean
}

const TEXTS = ['I read the first.', '', 'Three notes are read.']
const THOUGHTS = ['One is not enough.', 'Two more will do.']
const call = (name: string) => ({ name: 'read_note', input: { name } })

/** Prepares a task of three turns: a text and a call, two calls at once, a text. */
export async function prepareNoteTask({ protocol, thinks }: NoteModel): Promise<NoteTask> {
  const turns: ScriptedTurn[] = [
    { text: TEXTS[0] ?? '', calls: [call('one')] },
    { calls: [call('two'), call('three')] },
    { text: TEXTS[2] ?? '' },
  ]
  const thought = turns.map((turn, index) => {
    const thinking = THOUGHTS[index]
    return thinks && thinking !== undefined ? { ...turn, thinking } : turn
  })
  return {
    prompt: `Read the notes of ${uniqueName('author')}. ${await scriptTurns(protocol, thought)}`,
    thinks,
  }
}

/**
 * Expects that the task was done on responses, and that every turn's request to the upstream had all earlier messages.
 */
export async function expectNotesRead(bench: Bench, task: NoteTask, outcome: LibraryOutcome): Promise<void> {
  const { input, output } = TURN_USAGE
  expect(outcome).toEqual({ text: TEXTS.join(''), steps: 3, usage: { input: 3 * input, output: 3 * output } })
  const sent = modelCalls(bench)
  const responses = Array.from({ length: 3 }, () => ['/v1/responses', 200])
  expect(sent.map(({ path, status }) => [path, status])).toEqual(responses)
  expect(sent.every(({ headers }) => headers.authorization === `Bearer ${bench.tenant.key}`)).toBe(true)
  const told = (await upstreamCalls(bench, task.prompt)).map(toldConversation)
  const whole = noteConversation(task)
  expect(told).toEqual([whole.slice(0, 1), whole.slice(0, task.thinks ? 5 : 4), whole])
  const usages = Array.from({ length: 3 }, () => ({ provenance: 'reported', input, output }))
  expect(await expectRecorded(bench)).toEqual(usages)
  expect(bench.proxy.strays).toEqual([])
}

/** Messages of a task in the last request to the upstream. */
export function noteConversation({ prompt, thinks }: NoteTask): Told[] {
  const thought = (index: number): Told[] => (thinks ? [['thinking', THOUGHTS[index] ?? '']] : [])
  const read = (number: number, name: string): Told => ['call', number, 'read_note', { name }]
  const note = (number: number, name: string): Told => ['result', number, `{"note":"This is note ${name}."}`]
  return [
    ['user', prompt],
    ...thought(0),
    ['text', TEXTS[0] ?? ''],
    read(0, 'one'),
    note(0, 'one'),
    ...thought(1),
    read(1, 'two'),
    read(2, 'three'),
    note(1, 'two'),
    note(2, 'three'),
  ]
}
