import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeRunFolder } from '../../../scripts/deploy/run-folder.ts'

const ID = '0b0e7c52-3a0f-4a35-9d55-6f2f2e8f6a01'
/** Of a process that does not exist. */
const ENDED = '4194304999 1'
const own = `run-${hostname().replace(/[^\w.-]/g, '_')}-${ID}`

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-runs-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function leaveRun(name: string): void {
  mkdirSync(join(folder, name))
  writeFileSync(join(folder, `${name}.lock`), ENDED)
}

it('removes the folders of runs of this machine that were killed', () => {
  leaveRun(own)
  const run = makeRunFolder(folder)
  expect(existsSync(join(folder, own))).toBe(false)
  run.remove()
  expect(readdirSync(folder)).toEqual([])
})

it('leaves those of a machine whose name begins with the name of this one', () => {
  const other = own.replace(ID, `2-${ID}`)
  leaveRun(other)
  makeRunFolder(folder).remove()
  expect(readdirSync(folder).sort()).toEqual([other, `${other}.lock`])
})
