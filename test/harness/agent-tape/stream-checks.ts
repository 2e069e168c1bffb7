import { expect } from 'vitest'
import {
  askJson,
  expectSeenIn,
  type Reading,
  read,
  replay,
  type ToldResponse,
  wholeEvents,
} from '../../faults/support/response-readers.ts'
import { runPath, textsOf } from '../../http/support/agent-responses.ts'
import { checkResponseStream } from '../conformance.ts'
import type { AttemptRow } from './attempts.ts'
import type { DrivenRun } from './run-driver.ts'
import type { TapeSystem } from './tape-system.ts'

/** Reads the stream of a run until it ends or breaks. */
export const watchedRun = ({ gateway, tenant }: TapeSystem, runId: string): Reading =>
  read(gateway, { key: tenant.key, path: runPath(runId, '?stream=true') })

const ENDS: Record<string, string> = { success: 'completed', failure: 'failed', cancelled: 'incomplete' }

/**
 * Expects that the stream of a run is the same for each reader and keeps the rules of streams. It ends as the run did,
 * and has the outputs of its steps in order. A reader from the beginning got the same events.
 */
export async function expectSoundStream(
  { gateway, tenant: { key } }: TapeSystem,
  { runId, reruns, seen }: DrivenRun,
  status: string,
  rows: readonly AttemptRow[],
): Promise<void> {
  const replayed = () => replay(gateway, key, `resp_run_${runId}`)
  const [text, again] = await Promise.all([replayed(), replayed()])
  expect(again).toBe(text)
  const events = wholeEvents(text)
  const last = events.at(-1)?.data.response as unknown as ToldResponse & Parameters<typeof textsOf>[0]
  const about = JSON.stringify({ runId, rows, text })
  expect(checkResponseStream(events), about).toEqual([])
  expect(last.status, about).toBe(ENDS[status])
  expect(await askJson(gateway, { key, path: runPath(runId) }), about).toEqual(last)
  // Among them are texts of attempts that failed.
  const outputs = rows.flatMap(({ output }) => output ?? [])
  const found = textsOf(last).reduce((count, text) => count + (text === outputs[count] ? 1 : 0), 0)
  expect(found, about).toBe(outputs.length)
  // A repeated step removes the end of a failed run that an earlier reader received. A reader may have been refused, or
  // not answered, while the gateway or Postgres was away.
  if (seen && reruns === 0 && (await seen.result).status === 200) expectSeenIn(text, seen.bytes(), 0, about)
}
