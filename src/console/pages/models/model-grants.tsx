import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { RequestOf } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import { type Me, may } from '../../data/me.ts'
import { useUsers } from '../../data/names.ts'
import { Button } from '../../design/button.tsx'
import { Failure } from '../../design/notice.tsx'
import { Section } from '../../design/section.tsx'
import styles from './models.module.css'
import { grantText, type Model, TryLink } from './models.tsx'
import { TEXT } from './text.ts'

/** Who may use a model, and giving that right to more of them. */
export function ModelGrants({ me, model }: { me: Me; model: Model }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { slug, id: organizationId } = me.organization
  const canGrant = may(me, 'models.grant')
  const remove = useMutation({
    mutationFn: (grantId: string) => call('grants.remove', { path: { organizationId, grantId } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['models'] }),
  })
  return (
    <Section
      title={model.id}
      note={TEXT.who}
      end={
        <span className={styles.links}>
          <TryLink slug={slug} model={model.id} />
          {may(me, 'calls.read') && (
            <Link to="/$slug/calls" params={{ slug }} search={{ q: `model:${model.id}` }}>
              {TEXT.callsOf}
            </Link>
          )}
          <Button look="plain" onClick={() => navigate({ to: '/$slug/models', params: { slug } })}>
            {TEXT.close}
          </Button>
        </span>
      }
    >
      {model.granted_by.length === 0 && <p className={styles.none}>{TEXT.nobody}</p>}
      <ul className={styles.grants}>
        {model.granted_by.map((grant) => (
          <li key={grant.id}>
            <span>{grantText(grant)}</span>
            {canGrant && (
              <Button
                look="plain"
                onClick={() => remove.mutate(grant.id)}
                disabled={remove.isPending}
                aria-label={TEXT.removeOf(grantText(grant))}
              >
                {TEXT.remove}
              </Button>
            )}
          </li>
        ))}
      </ul>
      {remove.error && <Failure error={remove.error} />}
      {canGrant && <GrantForm me={me} model={model} />}
    </Section>
  )
}

/** The body of a grant to a subject, such as `group 0190…` or `organization `. */
function grantBody(modelId: string, subject: string): RequestOf<'grants.create'>['body'] {
  const [type, id = ''] = subject.split(' ')
  const body = { model_id: modelId, subject_id: id }
  if (type === 'role') return { ...body, subject_type: type, subject_id: id as 'member' }
  if (type === 'group' || type === 'user') return { ...body, subject_type: type }
  return { model_id: modelId, subject_type: 'organization' }
}

function GrantForm({ me, model }: { me: Me; model: Model }) {
  const queries = useQueryClient()
  const organizationId = me.organization.id
  const subjects = useSubjects(me)
  const [subject, setSubject] = useState('organization ')
  const grant = useMutation({
    mutationFn: () => call('grants.create', { path: { organizationId }, body: grantBody(model.id, subject) }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['models'] }),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    grant.mutate()
  }
  return (
    <form className={styles.form} onSubmit={submit}>
      <label>
        {TEXT.to}{' '}
        <select value={subject} onChange={({ target }) => setSubject(target.value)}>
          {subjects.map(({ value, text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <Button look="main" type="submit" disabled={grant.isPending}>
        {TEXT.grantNow}
      </Button>
      {grant.error && <Failure error={grant.error} />}
    </form>
  )
}

/** To whom a model can be granted: everybody, a role, a group or a user. */
function useSubjects(me: Me): Array<{ value: string; text: string }> {
  const path = { organizationId: me.organization.id }
  const groups = useQuery({
    queryKey: ['groups', path.organizationId],
    queryFn: () => call('groups.list', { path, query: { limit: 200 } }),
    enabled: may(me, 'groups.read'),
  })
  const users = useUsers(me)
  const { subjects } = TEXT
  return [
    { value: 'organization ', text: subjects.organization },
    ...['member', 'admin', 'owner'].map((role) => ({
      value: `role ${role}`,
      text: `${subjects.role} ${role}`,
    })),
    ...(groups.data?.data ?? []).map(({ id, name }) => ({
      value: `group ${id}`,
      text: `${subjects.group} ${name}`,
    })),
    ...(users.data?.data ?? []).map(({ id, name }) => ({
      value: `user ${id}`,
      text: `${subjects.user} ${name}`,
    })),
  ]
}
