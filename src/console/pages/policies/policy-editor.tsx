import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Refusal } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import { plural } from '../../data/format.ts'
import type { Me } from '../../data/me.ts'
import { Button } from '../../design/button.tsx'
import { Field } from '../../design/field.tsx'
import { Failure, Notice } from '../../design/notice.tsx'
import { Head } from '../../design/page.tsx'
import { DryRun } from './dry-run.tsx'
import { LiveTest } from './live-test.tsx'
import styles from './policies.module.css'
import {
  contentOf,
  differences,
  keepDraft,
  type Policy,
  type PolicyContent,
  readDraft,
} from './policy-draft.ts'
import { RuleTable } from './rule-table.tsx'
import { ScopeEditor } from './scope-editor.tsx'
import { TEXT } from './text.ts'
import { VersionTable } from './version-table.tsx'
import { WordLists } from './word-lists.tsx'

/** The id under which the draft of a policy is kept that does not exist yet. */
const NEW_ID = 'new'

type EditorProps = {
  me: Me
  /** Null for one that does not exist yet, which begins with the starter. */
  policy: Policy | null
  starter: PolicyContent
  canChange: boolean
  list: ReactNode
}

/** A policy, its draft, and a sample of what the draft does. */
export function PolicyEditor({ me, policy, starter, canChange, list }: EditorProps) {
  const base = policy === null ? starter : contentOf(policy)
  const draft = useDraft(me.organization.id, policy, base)
  const [panel, setPanel] = useState<'difference' | 'dry-run' | null>(null)
  const toggle = (name: typeof panel) => setPanel(panel === name ? null : name)
  const { content, change } = draft
  useDraftKeys({ save: draft.keep, dryRun: () => toggle('dry-run') })
  const changes = policy === null ? [] : differences(base, content)
  return (
    <>
      <Head acts={<Acts {...{ me, policy, draft, canChange, changes, toggle }} />}>
        <Standing policy={policy} changes={changes} draft={draft} canChange={canChange} />
      </Head>
      {draft.overtakenBy !== null && policy && <Conflict policy={policy} draft={draft} changes={changes} />}
      {panel === 'difference' && <Changes title={TEXT.difference} changes={changes} />}
      {panel === 'dry-run' && <DryRun me={me} content={content} />}
      <div className={styles.split}>
        {list}
        <div>
          {canChange && (
            <Field
              label={TEXT.name}
              value={content.name}
              maxLength={200}
              onChange={({ target }) => change({ name: target.value })}
            />
          )}
          <RuleTable {...{ me, base, content, change, canChange }} />
          <ScopeEditor {...{ content, change, canChange }} stale={policy?.stale_scope ?? []} />
          <WordLists {...{ content, change, canChange }} />
          {policy && <VersionTable me={me} policy={policy} changes={changes} />}
        </div>
        <LiveTest me={me} content={content} />
      </div>
    </>
  )
}

/** What changes a draft. */
export type Change = (members: Partial<PolicyContent>) => void

interface DraftState {
  content: PolicyContent
  /** The version that the draft began with. */
  version: number
  isKept: boolean
  isChanged: boolean
  /** The version in force, where it is a later one. */
  overtakenBy: number | null
  change: Change
  keep: () => void
  discard: () => void
  /** Goes on from the version in force, with the content of the draft. */
  rebase: () => void
}

function useDraft(organizationId: string, policy: Policy | null, base: PolicyContent): DraftState {
  const id = policy?.id ?? NEW_ID
  const [kept] = useState(() => readDraft(organizationId, id))
  const [content, setContent] = useState(kept?.content ?? null)
  const [version, setVersion] = useState(kept?.version ?? policy?.version ?? 0)
  const [isKept, setKept] = useState(kept !== null)
  const isChanged = content !== null
  const current = policy?.version ?? 0
  const shown = content ?? base
  return {
    content: shown,
    version: isChanged ? version : current,
    isKept,
    isChanged,
    overtakenBy: isChanged && version !== current ? current : null,
    change: (members) => {
      if (!isChanged) setVersion(current)
      setContent({ ...shown, ...members })
      setKept(false)
    },
    keep: () => {
      if (!isChanged) return
      keepDraft(organizationId, id, { version, content: shown })
      setKept(true)
    },
    discard: () => {
      keepDraft(organizationId, id, null)
      setContent(null)
      setKept(false)
    },
    rebase: () => setVersion(current),
  }
}

type StandingProps = { policy: Policy | null; changes: string[]; draft: DraftState; canChange: boolean }

/** The policy and its version in a sentence. */
function Standing({ policy, changes, draft, canChange }: StandingProps) {
  return (
    <p className={styles.standing}>
      <b>{draft.content.name}</b>{' '}
      {policy && (policy.enabled ? TEXT.inForce(policy.version) : TEXT.isOff(policy.version))}
      {policy && changes.length > 0 && (
        <span>
          {' · '}
          {TEXT.draftOf(policy.version + 1, plural(changes.length, TEXT.change))},{' '}
          {draft.isKept ? TEXT.kept : TEXT.unsaved}
        </span>
      )}
      {!canChange && ` · ${TEXT.readOnly}`}
    </p>
  )
}

type ActsProps = {
  me: Me
  policy: Policy | null
  draft: DraftState
  canChange: boolean
  changes: string[]
  toggle: (panel: 'difference' | 'dry-run') => void
}

/** What can be done with the draft and with the policy, confirmed where it stands. */
function Acts({ me, policy, draft, canChange, changes, toggle }: ActsProps) {
  const [asked, setAsked] = useState<'remove' | 'off' | null>(null)
  const act = useActs(me, policy, draft)
  const hasChanges = changes.length > 0
  const error = act.error !== null && !isOvertaken(act.error) ? act.error : null
  const name = policy?.name ?? ''
  return (
    <>
      {error !== null && <Failure error={error} />}
      {draft.isChanged && (
        <Button look="plain" onClick={draft.discard}>
          {TEXT.discard}
        </Button>
      )}
      {policy && hasChanges && <Button onClick={() => toggle('difference')}>{TEXT.difference}</Button>}
      <Button onClick={() => toggle('dry-run')}>{TEXT.dryRun}</Button>
      {canChange && policy && !hasChanges && asked === null && (
        <>
          <Button onClick={() => (policy.enabled ? setAsked('off') : act.mutate('on'))}>
            {policy.enabled ? TEXT.switchOff : TEXT.switchOn}
          </Button>
          <Button look="danger" onClick={() => setAsked('remove')}>
            {TEXT.remove}
          </Button>
        </>
      )}
      {asked !== null && (
        <>
          <span>{asked === 'off' ? TEXT.confirmOff(name) : TEXT.confirmRemove(name)}</span>
          <Button look="danger" onClick={() => act.mutate(asked, { onSuccess: () => setAsked(null) })}>
            {TEXT.yes}
          </Button>
          <Button look="plain" onClick={() => setAsked(null)}>
            {TEXT.cancel}
          </Button>
        </>
      )}
      {canChange && (policy === null || hasChanges) && (
        <Button
          look="main"
          onClick={() => act.mutate('save')}
          disabled={act.isPending || draft.overtakenBy !== null}
        >
          {policy === null ? TEXT.create : TEXT.enable(policy.version + 1)}
        </Button>
      )}
    </>
  )
}

/** Whether a change was refused since the policy has another version by now. */
const isOvertaken = (error: unknown): boolean =>
  error instanceof Refusal && error.status === 422 && error.message.includes('its version is')

function useActs(me: Me, policy: Policy | null, draft: DraftState) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { id: organizationId, slug } = me.organization
  const { content, version } = draft
  return useMutation({
    mutationFn: async (what: 'save' | 'on' | 'off' | 'remove'): Promise<string | null> => {
      if (policy === null) {
        const made = await call('policies.create', {
          path: { organizationId },
          body: { ...content, enabled: true },
        })
        return made.id
      }
      const path = { organizationId, policyId: policy.id }
      if (what === 'remove') await call('policies.remove', { path })
      else if (what === 'save')
        await call('policies.change', { path, body: { ...content, enabled: true, version } })
      else await call('policies.change', { path, body: { enabled: what === 'on', version: policy.version } })
      return what === 'remove' ? null : policy.id
    },
    onSuccess: async (policyId, what) => {
      if (what === 'save') draft.discard()
      await queries.invalidateQueries({ queryKey: ['policies', organizationId] })
      queries.invalidateQueries({ queryKey: ['policy-versions', organizationId] })
      if (policyId === null) navigate({ to: '/$slug/policies', params: { slug } })
      else navigate({ to: '/$slug/policies/$policyId', params: { slug, policyId } })
    },
    // The list tells which version there is by now.
    onError: (error) =>
      isOvertaken(error) && queries.invalidateQueries({ queryKey: ['policies', organizationId] }),
  })
}

/** Somebody else has changed the policy: both changes side by side. */
function Conflict({ policy, draft, changes }: { policy: Policy; draft: DraftState; changes: string[] }) {
  return (
    <Notice
      title={TEXT.conflict(policy.version)}
      look="warn"
      acts={<Button onClick={draft.rebase}>{TEXT.takeTheirs}</Button>}
    >
      <Changes title={TEXT.yours} changes={changes} />
    </Notice>
  )
}

export const Changes = ({ title, changes }: { title: string; changes: readonly string[] }) => (
  <section className={styles.changes} aria-label={title}>
    <h2>{title}</h2>
    {changes.length === 0 ? (
      <p>{TEXT.same}</p>
    ) : (
      <ul>
        {changes.map((change) => (
          <li key={change}>{change}</li>
        ))}
      </ul>
    )}
  </section>
)

/** Ctrl S keeps the draft, Ctrl Enter opens the dry run, also while somebody types. */
function useDraftKeys(acts: { save: () => void; dryRun: () => void }): void {
  const latest = useRef(acts)
  latest.current = acts
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (!event.ctrlKey && !event.metaKey) return
      if (event.key === 's') latest.current.save()
      else if (event.key === 'Enter') latest.current.dryRun()
      else return
      event.preventDefault()
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [])
}
