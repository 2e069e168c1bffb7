import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { Usage } from '../../src/ledger/audit-record.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  type Caller,
  conversationOf,
  newCaller,
  newResponse,
  replayed,
  seedModel,
  settledCalls,
  speaking as speakingResponse,
  until,
  writerOf,
} from './durable-response-harness.ts'
import { LEASE_MS } from './ledger-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

const gate = useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)

const speaking = (caller: Caller) => speakingResponse(model, caller)

/** What Postgres has of the one call that was made. */
async function callRecord({ organization }: Caller): Promise<Record<string, unknown>> {
  const [row] = (await organization.rows()).filter(({ kind }) => kind === 'call')
  return JSON.parse(row?.body ?? '')
}

describe('an object that dies', () => {
  it('in the middle says that the response has failed, once', async () => {
    const caller = await newCaller()
    const { response, reader } = await speaking(caller)
    await abortAllDurableObjects()
    expect(await reader.done).toBe(false)
    const { text, last } = await replayed(response)
    expect(text.startsWith(reader.text)).toBe(true)
    expect(last).toMatchObject({ status: 'failed', output_text: 'Hello' })
    await abortAllDurableObjects()
    expect(await response.replay()).toBe(text)
    expect(await response.snapshot()).toEqual(last as never)
    await response.runAlarm()
    expect(await response.row()).toMatchObject({ status: 'failed' })
    expect(await writerOf(await conversationOf(response))).toBeNull()
    // Without waiting for the lease.
    expect(await settledCalls(caller.organization)).toEqual([0])
  })

  it('says what the call that died with it is charged for, and the audit record says so too', async () => {
    const caller = await newCaller()
    const { response } = await speaking(caller)
    await abortAllDurableObjects()
    const away = vi.spyOn(env.LEDGER, 'getByName').mockImplementation(() => {
      throw new Error('the ledger is away')
    })
    const { last } = await replayed(response)
    away.mockRestore()
    await response.runAlarm()
    expect(await settledCalls(caller.organization)).toEqual([0])
    const record = await callRecord(caller)
    const { input, output } = record.usage as Usage
    expect(input).toBeGreaterThan(0)
    expect(output).toBe(Math.ceil('Hello'.length / 3))
    expect(last.usage).toMatchObject({ input_tokens: input, output_tokens: output })
    expect(record).toMatchObject({ flags: ['interrupted'], provenance: 'estimated' })
  })

  it('of whose call the lease ran out marks what the record says instead', async () => {
    const caller = await newCaller()
    const { response } = await speaking(caller)
    await abortAllDurableObjects()
    passTime(20 * LEASE_MS)
    await caller.organization.runAlarm()
    expect((await replayed(response)).last.usage).toMatchObject({ output_tokens: 2 })
    await settledCalls(caller.organization)
    expect(await callRecord(caller)).toMatchObject({ flags: ['settled_by_alarm'], provenance: 'estimated' })
  })

  it('is found by its own alarm', async () => {
    const caller = await newCaller()
    const { response } = await speaking(caller)
    await abortAllDurableObjects()
    // The first wakes it, the second pays what the first found owed.
    expect(await response.runAlarm()).toBe(true)
    expect(await response.runAlarm()).toBe(true)
    expect(await response.row()).toMatchObject({ status: 'failed' })
  })

  it('during admission leaves nothing, also when Postgres has begun it', async () => {
    const caller = await newCaller()
    const response = newResponse(caller)
    gate.held = true
    gate.heldText = 'INSERT INTO \\"responses\\"'
    const started = response.start().catch(() => null)
    await until(async () => expect(await response.row()).toMatchObject({ status: 'in_progress' }))
    const conversation = await conversationOf(response)
    await abortAllDurableObjects()
    gate.held = false
    await started
    expect(await response.snapshot()).toBeNull()
    await until(async () => expect(await response.row()).toBeUndefined())
    expect(await writerOf(conversation)).toBeNull()
    expect(model.requests).toEqual([])
    passTime(20 * LEASE_MS)
    expect(await settledCalls(caller.organization)).toHaveLength(1)
  })

  it('between what it became and its last event tells the same end', async () => {
    const caller = await newCaller()
    const { response, reader, asked } = await speaking(caller)
    gate.mode = 'answer_lost'
    gate.held = true
    asked.finish()
    await until(() => expect(reader.text).toContain('response.output_item.done'))
    await until(async () => expect(await response.snapshot()).toMatchObject({ status: 'completed' }))
    expect(reader.text).not.toContain('event: response.completed')
    await abortAllDurableObjects()
    gate.held = false
    gate.mode = 'open'
    const { text, last } = await replayed(response)
    expect(text.startsWith(reader.text)).toBe(true)
    expect(last).toMatchObject({ status: 'completed', output_text: 'Hello' })
    expect(await response.settle()).toBe('settled')
    expect(await response.row()).toMatchObject({ status: 'completed' })
  })

  it('after the end tells it again', async () => {
    const caller = await newCaller()
    const { response, reader, asked } = await speaking(caller)
    asked.finish()
    expect(await reader.done).toBe(true)
    await abortAllDurableObjects()
    expect(await response.replay()).toBe(reader.text)
    expect(await settledCalls(caller.organization)).toEqual([200])
  })

  it('whose first events were not stored was never begun', async () => {
    const caller = await newCaller()
    const { response } = await speaking(caller)
    await runInDurableObject(response.stub(), (_, { storage }) => {
      for (const table of ['event_segments', 'response_commits']) {
        const [found] = storage.sql.exec('SELECT 1 FROM sqlite_master WHERE name = ?', table)
        if (found) storage.sql.exec(`DELETE FROM ${table}`)
      }
    })
    await abortAllDurableObjects()
    expect(await response.snapshot()).toBeNull()
    await until(async () => expect(await response.row()).toBeUndefined())
  })
})
