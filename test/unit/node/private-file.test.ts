import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, expect, it } from 'vitest'
import { writePrivateFile } from '../../../scripts/node/private-file.ts'

/** Calls of the file system, in their order. */
const calls: string[] = []
const { openSync, fsyncSync, renameSync } = fs

/** Records calls, also those of a module that another test of this worker has loaded. */
function recordCalls(): void {
  const names = new Map<number, string>()
  fs.openSync = (path, ...rest) => {
    const file = openSync(path, ...rest)
    names.set(file, String(path))
    return file
  }
  fs.fsyncSync = (file) => {
    fsyncSync(file)
    calls.push(`sync ${names.get(file)}`)
  }
  fs.renameSync = (from, to) => {
    renameSync(from, to)
    calls.push(`rename ${to}`)
  }
  syncBuiltinESMExports()
}

afterEach(() => {
  Object.assign(fs, { openSync, fsyncSync, renameSync })
  syncBuiltinESMExports()
})

const root = fs.mkdtempSync(join(tmpdir(), 'headgate-private-file-'))
afterAll(() => fs.rmSync(root, { recursive: true }))

it('syncs the text before it gets its name, and then each folder that has a new name', () => {
  const path = join(root, 'one/two/secrets.json')
  recordCalls()
  writePrivateFile(path, 'a secret')
  expect(calls).toEqual([
    `sync ${path}.${process.pid}.tmp`,
    `rename ${path}`,
    `sync ${dirname(path)}`,
    `sync ${join(root, 'one')}`,
    `sync ${root}`,
  ])
  calls.length = 0
  writePrivateFile(path, 'another one')
  expect(calls.slice(1)).toEqual([`rename ${path}`, `sync ${dirname(path)}`])
  expect(fs.readFileSync(path, 'utf8')).toBe('another one')
})

it('never reuses a file with wider permissions', () => {
  const path = join(root, 'secrets.json')
  for (const name of [path, `${path}.${process.pid}.tmp`]) fs.writeFileSync(name, 'wide', { mode: 0o644 })
  writePrivateFile(path, 'a secret')
  expect(fs.statSync(path).mode & 0o777).toBe(0o600)
  expect(fs.readdirSync(root).filter((name) => name.endsWith('.tmp'))).toEqual([])
})
