import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeEach, expect, it, vi } from 'vitest'
import { writePrivateFile } from '../../../scripts/node/private-file.ts'

/** Calls of the file system, in their order. */
const calls = vi.hoisted(() => ({ list: [] as string[], names: new Map<number, string>() }))

vi.mock('node:fs', async (original) => {
  const real = await original<typeof import('node:fs')>()
  return {
    ...real,
    openSync: (path: string, ...rest: [string, number?]) => {
      const file = real.openSync(path, ...rest)
      calls.names.set(file, path)
      return file
    },
    fsyncSync: (file: number) => {
      real.fsyncSync(file)
      calls.list.push(`sync ${calls.names.get(file)}`)
    },
    renameSync: (from: string, to: string) => {
      real.renameSync(from, to)
      calls.list.push(`rename ${to}`)
    },
  }
})

const root = fs.mkdtempSync(join(tmpdir(), 'headgate-private-file-'))
afterAll(() => fs.rmSync(root, { recursive: true }))
beforeEach(() => {
  calls.list.length = 0
})

it('syncs the text before it gets its name, and then each folder that has a new name', () => {
  const path = join(root, 'one/two/secrets.json')
  writePrivateFile(path, 'a secret')
  expect(calls.list).toEqual([
    `sync ${path}.${process.pid}.tmp`,
    `rename ${path}`,
    `sync ${dirname(path)}`,
    `sync ${join(root, 'one')}`,
    `sync ${root}`,
  ])
  calls.list.length = 0
  writePrivateFile(path, 'another one')
  expect(calls.list.slice(1)).toEqual([`rename ${path}`, `sync ${dirname(path)}`])
  expect(fs.readFileSync(path, 'utf8')).toBe('another one')
})

it('never reuses a file with wider permissions', () => {
  const path = join(root, 'secrets.json')
  for (const name of [path, `${path}.${process.pid}.tmp`]) fs.writeFileSync(name, 'wide', { mode: 0o644 })
  writePrivateFile(path, 'a secret')
  expect(fs.statSync(path).mode & 0o777).toBe(0o600)
  expect(fs.readdirSync(root).filter((name) => name.endsWith('.tmp'))).toEqual([])
})
