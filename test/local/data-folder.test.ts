import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { claimDataFolder, pauseDataFolder } from '../../scripts/serve/data-folder.ts'
import { freePort, startServe } from '../harness/serve-node.ts'

let folder: string
const cleanUps: Array<() => unknown> = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hg-claim-'))
  cleanUps.push(() => rmSync(folder, { recursive: true, force: true }))
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Handles that keep this process from ending. */
const openPipes = () => process.getActiveResourcesInfo().filter((name) => name === 'PipeWrap').length

describe('a data folder', () => {
  it('is paused until the end, and by one process at a time', async () => {
    const owner = { pause: vi.fn(async () => {}), resume: vi.fn(async () => {}) }
    cleanUps.push(await claimDataFolder(folder, owner))
    const paused = await pauseDataFolder(folder)
    await expect(pauseDataFolder(folder)).rejects.toThrow('this folder cannot be paused now')
    expect(owner.resume).not.toHaveBeenCalled()
    await paused.end()
    await vi.waitFor(() => expect(owner.resume).toHaveBeenCalledOnce())
    expect(owner.pause).toHaveBeenCalledOnce()
  })

  it('is free again when its owner serves, and not before; an owner that fails says so', async () => {
    const resumed = Promise.withResolvers<void>()
    const owner = { pause: async () => {}, resume: vi.fn(() => resumed.promise) }
    cleanUps.push(await claimDataFolder(folder, owner))
    const paused = await pauseDataFolder(folder)
    let ended: boolean | null = null
    const end = paused.end().then((hasResumed) => {
      ended = hasResumed
    })
    await vi.waitFor(() => expect(owner.resume).toHaveBeenCalledOnce())
    expect(ended).toBeNull()
    resumed.resolve()
    await end
    expect(ended).toBe(true)
    owner.resume.mockRejectedValue(new Error('it does not start'))
    expect(await (await pauseDataFolder(folder)).end()).toBe(false)
    expect(owner.resume).toHaveBeenCalledTimes(2)
  })

  it('whose owner ends during a pause is reported', async () => {
    const release = await claimDataFolder(folder, { pause: async () => {}, resume: async () => {} })
    const paused = await pauseDataFolder(folder)
    paused.check()
    await release()
    await vi.waitFor(() => expect(() => paused.check()).toThrow('has ended: begin again'))
    expect(await paused.end()).toBe(false)
  })

  it('resumes when the connection of its pause is lost', async () => {
    const owner = { pause: vi.fn(async () => {}), resume: vi.fn(async () => {}) }
    cleanUps.push(await claimDataFolder(folder, owner))
    const socket = connect(join(folder, 'control.sock'))
    socket.write('pause\n')
    await vi.waitFor(() => expect(owner.pause).toHaveBeenCalledOnce())
    socket.destroy()
    await vi.waitFor(() => expect(owner.resume).toHaveBeenCalledOnce())
  })

  it('that is empty is closed to other users; one with files is refused until it is closed', async () => {
    chmodSync(folder, 0o755)
    const release = await claimDataFolder(folder, null)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    await release()
    mkdirSync(join(folder, 'objects'), { mode: 0o755 })
    chmodSync(folder, 0o750)
    await expect(claimDataFolder(folder, null)).rejects.toThrow(
      `${folder} is open to other users: run chmod 700 ${folder}`,
    )
    chmodSync(folder, 0o700)
    cleanUps.push(await claimDataFolder(folder, null))
    expect(statSync(join(folder, 'objects')).mode & 0o777).toBe(0o700)
  })

  it('that Kubernetes has opened to the group of its volume is closed', async () => {
    mkdirSync(join(folder, 'objects'), { mode: 0o700 })
    for (const path of [folder, join(folder, 'objects')]) chmodSync(path, 0o2770)
    cleanUps.push(await claimDataFolder(folder, null))
    for (const path of [folder, join(folder, 'objects')]) expect(statSync(path).mode & 0o7777).toBe(0o700)
  })

  it.each([0o770, 0o2750, 0o2775, 0o3770])('with files and mode %o is refused', async (mode) => {
    writeFileSync(join(folder, 'of another program'), '')
    chmodSync(folder, mode)
    await expect(claimDataFolder(folder, null)).rejects.toThrow('is open to other users: run chmod 700')
    expect(statSync(folder).mode & 0o7777).toBe(mode)
  })

  it.skipIf(process.getuid?.() !== 0)(
    'of another user is refused, though Kubernetes may have opened it',
    async () => {
      writeFileSync(join(folder, 'of another program'), '')
      chownSync(folder, 1_000, 1_000)
      chmodSync(folder, 0o2770)
      await expect(claimDataFolder(folder, null)).rejects.toThrow('is open to other users: run chmod 700')
      expect(statSync(folder).mode & 0o7777).toBe(0o2770)
    },
  )

  it.skipIf(process.getuid?.() !== 0)('that root has claimed is in use for its own user', async () => {
    const USER = 1_000
    chownSync(folder, USER, USER)
    cleanUps.push(await claimDataFolder(folder, null))
    const { uid, gid } = statSync(join(folder, 'control.sock'))
    expect([uid, gid]).toEqual([USER, USER])
  })

  it('whose owner refuses a pause is not resumed, leaves no connection open, and may be asked again', async () => {
    const before = openPipes()
    let reason: string | null = 'it is starting'
    const owner = {
      pause: async () => {
        if (reason !== null) throw new Error(reason)
      },
      resume: vi.fn(async () => {}),
    }
    const release = await claimDataFolder(folder, owner)
    await expect(pauseDataFolder(folder)).rejects.toThrow('does not pause: it is starting')
    // One is the server's own.
    await vi.waitFor(() => expect(openPipes()).toBeLessThanOrEqual(before + 1))
    expect(owner.resume).not.toHaveBeenCalled()
    reason = null
    const paused = await pauseDataFolder(folder)
    expect(paused.hadOwner).toBe(true)
    await paused.end()
    await release()
  })

  it('in use is refused to the tools before they start', async () => {
    cleanUps.push(await claimDataFolder(folder, null))
    // There is nothing in it that could start.
    const bundle = mkdtempSync(join(tmpdir(), 'hg-bundle-'))
    cleanUps.push(() => rmSync(bundle, { recursive: true, force: true }))
    writeFileSync(join(bundle, 'gateway.js'), '')
    const variables = { DATA_DIR: folder, TOOLS_PORT: String(await freePort()), BUNDLE_DIR: bundle }
    const tools = startServe(variables, ['--tools'])
    expect(await tools.ended()).toBe(1)
    expect(tools.lines()).toMatchObject([
      { event: 'failed', reason: expect.stringContaining('is in use by another process') },
    ])
  })
})
