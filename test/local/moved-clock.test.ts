import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { inheritedEnvironment } from '../../scripts/node/inherited-environment.ts'
import { movedClock } from '../harness/moved-clock/moved-clock.ts'

const folders = (process.env.PATH ?? '').split(':')
const hasCompiler = process.platform === 'linux' && folders.some((folder) => existsSync(join(folder, 'cc')))

it.skipIf(!hasCompiler)('a moved clock is that of a process and of its children', () => {
  const environment = { ...inheritedEnvironment(), ...movedClock('2027-02-28T12:30:00Z') }
  const print = 'console.log(new Date().toISOString())'
  const child = `require('node:child_process').execFileSync(process.execPath, ['-e', ${JSON.stringify(print)}])`
  const both = `${print}; process.stdout.write(${child})`
  const printed = execFileSync(process.execPath, ['-e', both], { env: environment })
  expect(String(printed)).toMatch(/^2027-02-28T12:\d\d:\S+\n2027-02-28T12:\d\d:\S+\n$/)
})
