import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const SOURCE = join(import.meta.dirname, '../../../src/workspace/lock-down.ts')

/** Runs a script in a process of its own, after the lock-down. @returns what it printed, as JSON */
function afterLockDown(script: string): unknown {
  const program = `import { lockDown } from ${JSON.stringify(SOURCE)}\nlockDown()\nconst tried = (work) => { try { work(); return 'done' } catch (error) { return error.constructor.name } }\n${script}`
  return JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' }),
  )
}

describe('after the lock-down', () => {
  it('no prototype takes a member, or loses one', () => {
    const outcome = afterLockDown(`
      const targets = [Object, Array, String, Function, Promise, Map, RegExp, Error, TypeError, Uint8Array, Date]
      const outcomes = targets.flatMap((target) => [
        tried(() => { target.prototype.polluted = 1 }),
        tried(() => { target.prototype.toString = () => 'x' }),
        tried(() => { delete target.prototype.constructor }),
        tried(() => Object.defineProperty(target.prototype, 'polluted', { value: 1 })),
        tried(() => { target.polluted = 1 }),
      ])
      const hidden = [(function* () {})(), [][Symbol.iterator](), new Map().entries(), (async () => {})]
      for (const one of hidden) outcomes.push(tried(() => { Object.getPrototypeOf(one).next = 1; Object.getPrototypeOf(one).polluted = 1 }))
      console.log(JSON.stringify([[...new Set(outcomes)], ({}).polluted ?? null, tried(() => { JSON.parse = 1 }), tried(() => { Math.max = 1 })]))`)
    expect(outcome).toEqual([['TypeError'], null, 'TypeError', 'TypeError'])
  })

  it('a member named __proto__ is a member', () => {
    expect(
      afterLockDown(`
      const object = {}
      object['__proto__'] = { polluted: 1 }
      console.log(JSON.stringify([object.polluted ?? null, Object.getPrototypeOf(object) === Object.prototype, Object.keys(object)]))`),
    ).toEqual([null, true, ['__proto__']])
  })

  it('objects still shadow what they inherit', () => {
    expect(
      afterLockDown(`
      class Own extends Error { constructor() { super('m'); this.name = 'Own'; this.message = 'n' } }
      const plain = {}
      plain.toString = () => 'own'
      plain.constructor = 1
      const list = []
      list.push = 5
      console.log(JSON.stringify([String(new Own()), String(plain), plain.constructor, list.push, Object.keys(plain)]))`),
    ).toEqual(['Own: n', 'own', 1, 5, ['toString', 'constructor']])
  })
})
