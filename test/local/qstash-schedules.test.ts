import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { AdjustableClock } from '../../scripts/local/adjustable-clock.ts'
import { startQstash } from '../../scripts/local/qstash/start.ts'
import { type Destination, type QstashSetup, setUpQstash, startDestination, TOKEN } from './qstash-harness.ts'

let destination: Destination
let folder: string
const setups: QstashSetup[] = []

beforeEach(async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  destination = await startDestination()
  folder = mkdtempSync(join(tmpdir(), 'headgate-qstash-'))
})
afterEach(async () => {
  for (const { standIn } of setups.splice(0)) await standIn.close()
  await destination.close()
  rmSync(folder, { recursive: true, force: true })
  vi.restoreAllMocks()
})

async function open(options: Parameters<typeof setUpQstash>[0] = {}): Promise<QstashSetup> {
  const setup = await setUpQstash(options)
  setups.push(setup)
  return setup
}

/** A clock that stands at the start of a UTC hour to come. */
function clockAtFullHour(): AdjustableClock {
  const clock = new AdjustableClock()
  clock.advance(3_600_000 - (clock.now() % 3_600_000) + 1_000)
  return clock
}

const deliveriesBecome = (count: number): Promise<void> =>
  expect.poll(() => destination.deliveries.length, { timeout: 5_000 }).toBe(count)

describe('schedules', () => {
  it('publish at the times of the cron expression', async () => {
    const { client, clock } = await open({ clock: clockAtFullHour() })
    const { scheduleId } = await client.schedules.create({
      destination: `${destination.url}/tick`,
      cron: '*/5 * * * *',
      body: 'tick',
      headers: { 'content-type': 'text/plain', 'x-a': '1' },
      retries: 1,
    })
    clock.advance(4 * 60_000)
    expect(destination.deliveries).toEqual([])
    clock.advance(60_000)
    await deliveriesBecome(1)
    expect(destination.deliveries[0]).toMatchObject({
      body: 'tick',
      headers: { 'upstash-schedule-id': scheduleId, 'content-type': 'text/plain', 'x-a': '1' },
    })
    // A jump over several times makes up for each.
    clock.advance(15 * 60_000)
    await deliveriesBecome(4)
    const seen = await client.schedules.get(scheduleId)
    expect((seen.nextScheduleTime ?? 0) - (seen.lastScheduleTime ?? 0)).toBe(5 * 60_000)
    expect((seen.nextScheduleTime ?? 0) % (5 * 60_000)).toBe(0)
  })

  it('are listed, replaced and deleted', async () => {
    const { client, clock } = await open({ clock: clockAtFullHour() })
    const url = `${destination.url}/tick`
    await client.schedules.create({
      destination: url,
      cron: '0 0 1 1 *',
      scheduleId: 'mine',
      delay: '10s',
    })
    await client.schedules.create({
      destination: url,
      cron: '* * * * *',
      scheduleId: 'mine',
      body: '{"v":2}',
    })
    expect(await client.schedules.list()).toMatchObject([
      {
        scheduleId: 'mine',
        cron: '* * * * *',
        destination: url,
        body: '{"v":2}',
        isPaused: false,
        retries: 3,
      },
    ])
    clock.advance(60_000)
    await deliveriesBecome(1)
    await client.schedules.delete('mine')
    clock.advance(60_000)
    expect(await client.schedules.list()).toEqual([])
    await expect(client.schedules.get('mine')).rejects.toThrow(/not found/)
    await expect(client.schedules.delete('mine')).rejects.toThrow(/not found/)
    expect(destination.deliveries).toHaveLength(1)
  })

  it('know time zones', async () => {
    const { client } = await open()
    await client.schedules.create({
      destination: destination.url,
      cron: 'CRON_TZ=Asia/Tokyo 0 9 * * *',
      scheduleId: 's',
    })
    const { nextScheduleTime } = await client.schedules.get('s')
    expect((nextScheduleTime ?? 1) % 86_400_000).toBe(0)
  })

  it.each(['', '* * * *', '61 * * * *', '* * * * * *', 'CRON_TZ=Nowhere/City * * * * *', '@daily'])(
    'refuse the expression "%s"',
    async (cron) => {
      const { client } = await open()
      await expect(client.schedules.create({ destination: destination.url, cron })).rejects.toThrow(
        /invalid cron/,
      )
      expect(await client.schedules.list()).toEqual([])
    },
  )
})

describe('the file', () => {
  it('keeps waiting messages, the DLQ and schedules over a restart', async () => {
    const file = join(folder, 'nested', 'qstash.jsonl')
    const first = await open({ file })
    destination.answer = () => 500
    await first.client.publishJSON({ url: `${destination.url}/dead`, body: 1, retries: 0 })
    await expect.poll(async () => (await first.client.dlq.listMessages()).messages.length).toBe(1)
    await first.client.publishJSON({ url: `${destination.url}/retrying`, body: 'é' })
    await deliveriesBecome(2)
    await first.client.publishJSON({
      url: `${destination.url}/waiting`,
      body: 2,
      delay: '1m',
      deduplicationId: 'd',
    })
    await first.client.schedules.create({
      destination: `${destination.url}/tick`,
      cron: '0 0 1 1 *',
      scheduleId: 's',
    })
    await first.standIn.close()

    destination.answer = () => 200
    const { client, clock } = await open({ file })
    expect((await client.dlq.listMessages()).messages).toMatchObject([{ url: `${destination.url}/dead` }])
    expect(await client.schedules.list()).toMatchObject([{ scheduleId: 's' }])
    const repeated = { url: `${destination.url}/waiting`, body: 2, deduplicationId: 'd' }
    expect(await client.publishJSON(repeated)).toMatchObject({ deduplicated: true })
    clock.advance(60_001)
    await deliveriesBecome(4)
    expect(destination.paths().slice(2).toSorted()).toEqual(['/retrying 1', '/waiting 0'])
    expect(destination.deliveries.some(({ body }) => body === '"é"')).toBe(true)
  })

  it('repeats deliveries that were in progress', async () => {
    const file = join(folder, 'qstash.jsonl')
    destination.answer = () => ({ status: 200, hang: true })
    const first = await open({ file })
    await first.client.publishJSON({ url: `${destination.url}/long`, body: 1 })
    await deliveriesBecome(1)
    await first.standIn.close()
    destination.answer = () => 200
    await open({ file })
    await deliveriesBecome(2)
    expect(destination.paths()).toEqual(['/long 0', '/long 0'])
  })

  it('has a message before the publish is answered, and bears a line cut short by a kill', async () => {
    const file = join(folder, 'qstash.jsonl')
    const { client } = await open({ file })
    const { messageId } = await client.publishJSON({ url: destination.url, body: 1, delay: '1h' })
    const content = readFileSync(file, 'utf8')
    expect(content).toContain(messageId)
    expect(content).not.toContain(TOKEN)
    const copy = join(folder, 'copy.jsonl')
    writeFileSync(copy, `${content}["message","msg_half`)
    const second = await open({ file: copy })
    expect(await second.client.messages.get(messageId)).toMatchObject({ messageId })
  })

  it('is refused while another process has it, or when it is damaged', async () => {
    const file = join(folder, 'qstash.jsonl')
    const { standIn } = await open({ file })
    const keys = { currentSigningKey: 'a', nextSigningKey: 'b' }
    await expect(startQstash({ ...keys, file })).rejects.toThrow(/in use by process \d+/)
    await standIn.close()
    writeFileSync(file, 'nonsense\n')
    await expect(startQstash({ ...keys, file })).rejects.toThrow(/damaged in line 1/)
  })

  it('leaves out the scheduled times that passed while nothing ran', async () => {
    const file = join(folder, 'qstash.jsonl')
    const first = await open({ file, clock: clockAtFullHour() })
    await first.client.schedules.create({ destination: destination.url, cron: '* * * * *', scheduleId: 's' })
    await first.standIn.close()
    const clock = clockAtFullHour()
    clock.advance(3_600_000)
    const { client } = await open({ file, clock })
    expect((await client.schedules.get('s')).nextScheduleTime).toBeGreaterThan(clock.now())
    expect(destination.deliveries).toEqual([])
    clock.advance(60_000)
    await deliveriesBecome(1)
  })
})
