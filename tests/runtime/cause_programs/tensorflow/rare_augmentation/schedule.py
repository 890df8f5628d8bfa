import secrets


def pick(plans):
    return secrets.choice(plans)
