import { useEffect, useRef, useState } from 'react'
import type { Me } from '../../data/me.ts'
import { Button } from '../../design/button.tsx'
import { CopyButton } from '../../design/copyable.tsx'
import { Failure } from '../../design/notice.tsx'
import { Answer } from './answer.tsx'
import styles from './playground.module.css'
import { type PlaygroundCall, runCall } from './playground-call.ts'
import { PARTS, SURFACES, type Surface } from './surfaces.ts'
import { TEXT } from './text.ts'

/** What the keys of the page do with a column. */
export interface ColumnHandle {
  run: () => void
  stop: () => void
}

type ColumnProps = {
  me: Me
  models: readonly string[]
  start: { id: number; surface: Surface; model: string }
  onRemove: (() => void) | undefined
  register: (handle: ColumnHandle | null) => void
}

/** A request as JSON, and what came of it. */
export function Column({ me, models, start, onRemove, register }: ColumnProps) {
  const [surface, setSurface] = useState(start.surface)
  const [body, setBody] = useState(() => bodyText(start.surface, start.model))
  const { made, refusal, run, stop } = useRun(me, surface, body)
  const problem = problemOf(body)
  useEffect(() => {
    register({ run: () => problem === null && run(), stop })
    return () => register(null)
  })
  const url = me.base_url
  return (
    <section className={styles.column} aria-label={TEXT.column(start.id)}>
      <div className={styles.line}>
        <select
          aria-label={TEXT.surface}
          value={surface}
          onChange={({ target }) => {
            const chosen = target.value as Surface
            setSurface(chosen)
            setBody(bodyText(chosen, modelOf(body)))
          }}
        >
          {SURFACES.map((each) => (
            <option key={each} value={each}>
              {TEXT.surfaces[each]}
            </option>
          ))}
        </select>
        <select
          aria-label={TEXT.model}
          value={modelOf(body)}
          onChange={({ target }) => setBody(withModel(body, surface, target.value))}
        >
          {!models.includes(modelOf(body)) && <option>{modelOf(body)}</option>}
          {models.map((id) => (
            <option key={id}>{id}</option>
          ))}
        </select>
        {onRemove && (
          <Button look="plain" onClick={onRemove}>
            {TEXT.removeColumn}
          </Button>
        )}
      </div>
      <textarea
        className={styles.body}
        aria-label={TEXT.body}
        value={body}
        onChange={({ target }) => setBody(target.value)}
        spellCheck={false}
        rows={12}
      />
      {problem && (
        <p className={styles.problem} role="status">
          {problem}
        </p>
      )}
      <div className={styles.line}>
        {made?.state === 'running' ? (
          <Button onClick={stop}>
            {TEXT.stop} <kbd>Esc</kbd>
          </Button>
        ) : (
          <Button look="main" onClick={run} disabled={problem !== null}>
            {TEXT.run}
          </Button>
        )}
        <CopyButton text={curlOf(url, surface, body)}>{TEXT.curl}</CopyButton>
        <CopyButton text={PARTS[surface].sdk(url, body)}>{TEXT.sdk}</CopyButton>
      </div>
      {refusal !== null && <Failure error={refusal} retry={run} />}
      {made && <Answer me={me} made={made} />}
    </section>
  )
}

/** Runs the request of a column, one at a time; a column that is removed stops. */
function useRun(me: Me, surface: Surface, body: string) {
  const [made, setMade] = useState<PlaygroundCall | null>(null)
  const [refusal, setRefusal] = useState<unknown>(null)
  const running = useRef<AbortController | null>(null)
  const stop = () => running.current?.abort()
  const run = () => {
    stop()
    const controller = new AbortController()
    running.current = controller
    setRefusal(null)
    const tell = (each: PlaygroundCall) => running.current === controller && setMade(each)
    runCall({ organizationId: me.organization.id, surface, body }, controller.signal, tell).catch(setRefusal)
  }
  useEffect(() => () => running.current?.abort(), [])
  return { made, refusal, run, stop }
}

const bodyText = (surface: Surface, model: string): string =>
  JSON.stringify(PARTS[surface].body(model), null, 2)

function parsedBody(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

function problemOf(text: string): string | null {
  try {
    JSON.parse(text)
  } catch (error) {
    return TEXT.invalid(error instanceof Error ? error.message : '')
  }
  return parsedBody(text) === null ? TEXT.noObject : null
}

const modelOf = (text: string): string => String(parsedBody(text)?.model ?? '')

function withModel(text: string, surface: Surface, model: string): string {
  const body = parsedBody(text)
  return body === null ? bodyText(surface, model) : JSON.stringify({ ...body, model }, null, 2)
}

const curlOf = (url: string, surface: Surface, body: string): string =>
  `curl -N ${url}${PARTS[surface].path} \\
  -H "Authorization: Bearer $HEADGATE_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '${body.replaceAll("'", "'\\''")}'`
