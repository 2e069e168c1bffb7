import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AdjustableClock } from '../../scripts/local/adjustable-clock.ts'
import { DeadLetters } from '../../scripts/node/qstash/dead-letters.ts'
import { createMessage, type DeadMessage } from '../../scripts/node/qstash/queued-message.ts'
import { startQueue } from '../../scripts/node/qstash/server.ts'
import { RecordStore } from '../../scripts/node/record-store.ts'
import { deadLetterFields } from '../../scripts/serve/dead-letter.ts'
import {
  CURRENT_KEY,
  connectClient,
  type Destination,
  NEXT_KEY,
  startDestination,
  TOKEN,
} from './qstash-harness.ts'

const DAY_MS = 86_400_000
const NOW = Date.parse('2026-12-01T00:00:00Z')

let folder: string
let destination: Destination
const cleanUps: Array<() => unknown> = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-dead-letters-'))
  cleanUps.push(() => rmSync(folder, { recursive: true }))
  destination = await startDestination()
  cleanUps.push(() => destination.close())
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const message = (body: Buffer | string = 'body') =>
  createMessage(
    { url: 'http://a.invalid/', headers: {}, body: Buffer.from(body), callerIp: '127.0.0.1' },
    NOW,
  )
const FAILED = { status: 500, headers: {}, body: Buffer.from('why') }

describe('dead letters', () => {
  it('are reported once, without a delivery more, and are gone from the file after seven days', async () => {
    const file = join(folder, 'queue.jsonl')
    const clock = new AdjustableClock()
    const letters: DeadMessage[] = []
    const options = { currentSigningKey: CURRENT_KEY, nextSigningKey: NEXT_KEY, token: TOKEN, file, clock }
    const queue = await startQueue({ ...options, onDeadLetter: (letter) => void letters.push(letter) })
    cleanUps.push(queue.close)
    destination.answer = () => 500
    const client = connectClient(queue.url)
    const { messageId } = await client.publishJSON({
      url: `${destination.url}/dead?query=1`,
      body: 'secret',
      retries: 0,
    })
    await expect.poll(() => letters.map((letter) => letter.messageId)).toEqual([messageId])
    const [letter] = letters
    const fields = letter && deadLetterFields(letter)
    expect(fields).toMatchObject({ message_id: messageId, path: '/dead', deliveries: 1, status: 500 })
    expect(JSON.stringify(fields)).not.toMatch(/secret|seen|query/)
    clock.advance(7 * DAY_MS - 1_000)
    expect((await client.dlq.listMessages()).messages).toHaveLength(1)
    clock.advance(2_000)
    destination.answer = () => 200
    await client.publishJSON({ url: `${destination.url}/next`, body: 1 })
    expect((await client.dlq.listMessages()).messages).toEqual([])
    expect(destination.paths()).toEqual(['/dead 0', '/next 0'])
    await queue.close()
    expect(readFileSync(file, 'utf8')).not.toContain(messageId)
  })

  it('that expired while the queue did not run are not stored again', () => {
    const file = join(folder, 'records.jsonl')
    const fill = new RecordStore(file)
    const filled = new DeadLetters(fill)
    fill.open()
    filled.add(message(), FAILED, NOW)
    filled.add(message(), FAILED, NOW + DAY_MS)
    fill.close()
    const store = new RecordStore(file)
    const letters = new DeadLetters(store)
    letters.removeOld(NOW + 7.5 * DAY_MS)
    store.open()
    store.close()
    expect(letters.list(NOW + 7.5 * DAY_MS)).toMatchObject([{ dlqId: `${NOW + DAY_MS}-2` }])
    expect(readFileSync(file, 'utf8').match(/"dead"/g)).toHaveLength(1)
  })

  it('are a thousand at most, of which the oldest go first', () => {
    const letters = new DeadLetters(new RecordStore(undefined))
    for (let number = 1; number <= 1_005; number++) letters.add(message(), FAILED, NOW)
    const ids = letters.list(NOW).map(({ dlqId }) => dlqId)
    expect(ids).toHaveLength(1_000)
    expect([ids[0], ids.at(-1)]).toEqual([`${NOW}-6`, `${NOW}-1005`])
  })

  it('have 100 MiB at most, and the largest one fits', () => {
    const letters = new DeadLetters(new RecordStore(undefined))
    const large = message(Buffer.alloc(50 * 1024 * 1024))
    for (let number = 1; number <= 3; number++) letters.add(large, FAILED, NOW)
    expect(letters.list(NOW).map(({ dlqId }) => dlqId)).toEqual([`${NOW}-3`])
  })
})
